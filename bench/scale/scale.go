// SPDX-License-Identifier: Apache-2.0
// The same as scale.c on goroutines, with channels where that has semaphores: go build -o bench-scale-go scale.go
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type seat struct {
	ask, answer chan int
	lock        sync.Mutex
	nr          int
	_           [128]byte
}

var (
	isOver   atomic.Bool
	total    atomic.Int64
	all      sync.WaitGroup
	shared   sync.Mutex
	sharedNr int
	jobs     = make(chan int, 1000)
)

func start(f func()) {
	all.Add(1)
	go func() {
		f()
		all.Done()
	}()
}

func repeat(step func(), end func()) {
	start(func() {
		nr := 0
		for !isOver.Load() {
			step()
			nr++
		}
		if end != nil {
			end()
		}
		total.Add(int64(nr))
	})
}

func pipe() (*os.File, *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	return r, w
}

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: scale semaphore|pipe|yield|spawn|mutex|mutexes|queue|sleep GOROUTINES [SECONDS]")
		os.Exit(2)
	}
	nr, _ := strconv.Atoi(os.Args[2])
	seconds := 1.0
	if len(os.Args) > 3 {
		seconds, _ = strconv.ParseFloat(os.Args[3], 64)
	}
	seats := make([]seat, nr)
	for i := range seats {
		s := &seats[i]
		switch os.Args[1] {
		case "semaphore":
			s.ask, s.answer = make(chan int, 1), make(chan int, 1)
			repeat(func() { s.ask <- 1; <-s.answer }, func() { close(s.ask) })
			start(func() {
				for range s.ask {
					s.answer <- 1
				}
			})
		case "pipe":
			toR, toW := pipe()
			fromR, fromW := pipe()
			question, answer := []byte{1}, []byte{1}
			repeat(func() { toW.Write(question); fromR.Read(question) }, func() { toW.Close() })
			start(func() {
				for {
					if n, _ := toR.Read(answer); n != 1 {
						return
					}
					fromW.Write(answer)
				}
			})
		case "yield":
			repeat(runtime.Gosched, nil)
		case "spawn":
			repeat(func() {
				done := make(chan int)
				go func() { close(done) }()
				<-done
			}, nil)
		case "mutex":
			repeat(func() { shared.Lock(); sharedNr++; shared.Unlock() }, nil)
		case "mutexes":
			s = &seats[i/2]
			repeat(func() { s.lock.Lock(); s.nr++; s.lock.Unlock() }, nil)
		case "queue":
			start(func() {
				done := 0
				for range jobs {
					for began := time.Now(); time.Since(began) < 5*time.Microsecond; {
					}
					done++
				}
				total.Add(int64(done))
			})
		case "sleep":
			repeat(func() { time.Sleep(time.Millisecond) }, nil)
		default:
			os.Exit(2)
		}
	}
	if os.Args[1] == "queue" {
		start(func() {
			for !isOver.Load() {
				jobs <- 1
			}
			close(jobs)
		})
	}
	began, busy := time.Now(), cpu()
	time.Sleep(time.Duration(seconds * 1e9))
	isOver.Store(true)
	took, used := time.Since(began).Seconds(), cpu()-busy
	all.Wait()
	fmt.Printf("%.0f %.1f\n", float64(total.Load())/took, used/took)
}
