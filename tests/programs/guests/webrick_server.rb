# SPDX-License-Identifier: Apache-2.0
#
# A WEBrick server on a free port, run by ../ruby.py; prints the port, ends on SIGINT and SIGTERM.

require "webrick"

$stdout.sync = true
log = WEBrick::Log.new($stderr, WEBrick::Log::INFO)
server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 0, Logger: log, AccessLog: [],
                                 MaxClients: 100, DoNotReverseLookup: true)
server.listeners.each { |listener| listener.listen(256) }
server.mount_proc("/") { |request, answer| answer.body = "you asked for #{request.path}\n" }
%w[INT TERM].each { |name| trap(name) { server.shutdown } }
puts "port #{server.listeners[0].addr[1]}"
server.start
puts "closed"
