// SPDX-License-Identifier: Apache-2.0
/*
 * What Node programs do: worker threads, its thread pool, children: `node_cases.js CASE`, `--list`.
 * Run by ../node.py. A case throws when something is wrong; its last line on stdout is `ok CASE`.
 */
"use strict";
const assert = require("assert");
const child_process = require("child_process");
const crypto = require("crypto");
const dns = require("dns").promises;
const fs = require("fs");
const http = require("http");
const net = require("net");
const os = require("os");
const path = require("path");
const util = require("util");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const range = (n) => Array.from({ length: n }, (_, i) => i);

function runWorker(data) {
	return new Promise((resolve, reject) => {
		const worker = new Worker(__filename, { workerData: data });
		let answer;
		worker.on("message", (message) => { answer = message; });
		worker.on("error", reject);
		worker.on("exit", (code) => code === 0 ? resolve(answer) : reject(new Error(`exit ${code}`)));
	});
}

function inWorker({ what, i, shared }) {
	if (what === "square") {
		parentPort.postMessage(i * i);
	} else if (what === "count") {
		const cell = new Int32Array(shared);
		Atomics.wait(cell, 1, 0);
		for (let n = 0; n < 1000; n++)
			Atomics.add(cell, 0, 1);
	} else if (what === "compute") {
		for (;;);
	}
}

const cases = {
	async workers_answer() {
		const answers = await Promise.all(range(10).map((i) => runWorker({ what: "square", i })));
		assert.deepStrictEqual(answers, range(10).map((i) => i * i));
	},
	async workers_share_memory() {
		const shared = new SharedArrayBuffer(8);
		const cell = new Int32Array(shared);
		const workers = range(6).map(() => runWorker({ what: "count", shared }));
		await sleep(50);
		Atomics.store(cell, 1, 1);
		Atomics.notify(cell, 1);
		await Promise.all(workers);
		assert.strictEqual(cell[0], 6000);
	},
	async computing_worker_is_terminated() {
		const worker = new Worker(__filename, { workerData: { what: "compute" } });
		await new Promise((resolve) => worker.on("online", resolve));
		assert.strictEqual(await worker.terminate(), 1);
	},
	async thread_pool_hashes_and_reads() {
		const derive = util.promisify(crypto.pbkdf2);
		const keys = await Promise.all(range(20).map(() => derive("word", "salt", 2000, 32, "sha256")));
		assert.strictEqual(new Set(keys.map((key) => key.toString("hex"))).size, 1);
		const folder = fs.mkdtempSync(path.join(os.tmpdir(), "node-"));
		await Promise.all(range(50).map(async (i) => {
			const file = path.join(folder, `${i}`);
			await fs.promises.writeFile(file, `text ${i}`);
			assert.strictEqual(await fs.promises.readFile(file, "utf8"), `text ${i}`);
		}));
		fs.rmSync(folder, { recursive: true });
		await Promise.all(range(20).map(() => dns.lookup("localhost")));
	},
	async http_server_and_clients() {
		const server = http.createServer((request, answer) => answer.end(`asked ${request.url}`));
		await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
		const { port } = server.address();
		const get = (url) => new Promise((resolve, reject) => {
			http.get({ host: "127.0.0.1", port, path: url, agent: false }, (answer) => {
				let body = "";
				answer.on("data", (data) => { body += data; });
				answer.on("end", () => resolve(body));
			}).on("error", reject);
		});
		await Promise.all(range(50).map(async (i) => {
			for (let n = 0; n < 5; n++)
				assert.strictEqual(await get(`/${i}/${n}`), `asked /${i}/${n}`);
		}));
		server.close();
	},
	async sockets_echo() {
		const server = net.createServer((sock) => sock.pipe(sock));
		await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
		await Promise.all(range(50).map((i) => new Promise((resolve, reject) => {
			const sock = net.connect(server.address().port, "127.0.0.1");
			let got = "";
			sock.on("data", (data) => { got += data; });
			sock.on("end", () => got === `hello ${i}` ? resolve() : reject(new Error(got)));
			sock.on("error", reject);
			sock.end(`hello ${i}`);
		})));
		server.close();
	},
	async children() {
		const exec = util.promisify(child_process.execFile);
		const outputs = await Promise.all(range(10).map((i) => exec("echo", [`${i}`])));
		assert.deepStrictEqual(outputs.map((o) => o.stdout), range(10).map((i) => `${i}\n`));
		assert.strictEqual(child_process.execSync("seq 100 | tail -1").toString(), "100\n");
		const child = child_process.spawn("sleep", ["60"]);
		child.kill("SIGTERM");
		const signal = await new Promise((resolve) => child.on("exit", (_, name) => resolve(name)));
		assert.strictEqual(signal, "SIGTERM");
	},
	async signals_reach_the_event_loop() {
		const got = new Promise((resolve) => process.once("SIGUSR2", resolve));
		const alive = setTimeout(() => {}, 30000);	/* a handler alone does not keep node up */
		process.kill(process.pid, "SIGUSR2");
		assert.strictEqual(await got, "SIGUSR2");
		clearTimeout(alive);
	},
	async timers_are_in_order() {
		/* Those of one length, that is: between two calls that set others any time may pass. */
		const seen = [];
		await Promise.all(range(3).map((i) => sleep(10).then(() => seen.push(i))));
		assert.deepStrictEqual(seen, range(3));
		await Promise.all([30, 10, 20].map(async (ms) => {
			const before = performance.now();
			await sleep(ms);
			assert(performance.now() - before >= ms - 1);
		}));
	},
};

if (!isMainThread)
	inWorker(workerData);
else if (process.argv[2] === "--list")
	console.log(Object.keys(cases).join("\n"));
else
	cases[process.argv[2]]().then(() => console.log(`ok ${process.argv[2]}`));
