// Command delaylink is a network of two sides with a delay between them, in namespaces of its own. What it is to be it is
// told on its input, as lib/network/link-messages.ts says; it ends with its input, or with TERM or INT, and nothing of it is
// left then.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"bakeoff.invalid/xk6-loadgen/link"
)

// threads that run Go code at a time: one for each direction, which may not wait for the others, what answers, and garbage collection.
const threads = 4

func main() { os.Exit(run()) }

func run() int {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	runtime.GOMAXPROCS(threads)
	link.KeepPrecedence()
	served := make(chan error, 1)
	go func() {
		if words := os.Args[1:]; len(words) > 0 {
			served <- fmt.Errorf("%q is not for it: it has no flags, and takes what it is to be as a line of JSON on its input (lib/network/link-messages.ts)", words[0])
			return
		}
		served <- link.Serve(os.Stdin, os.Stdout)
	}()
	select {
	case <-end:
	case err := <-served:
		if err != nil {
			fmt.Fprintf(os.Stderr, "delaylink: %s\n", err)
			return 1
		}
	}
	return 0
}
