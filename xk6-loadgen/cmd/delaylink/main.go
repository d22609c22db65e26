// Command delaylink is a network of two sides with a delay between them, in namespaces of its own. What it is to be it is
// told on its input, as lib/network/network.ts says; it ends with its input, or with TERM or INT, and nothing of it is
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

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-end
		os.Exit(0)
	}()
	runtime.GOMAXPROCS(threads)
	code := 0
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "delaylink: %s\n", err)
		code = 1
	}
	os.Exit(code)
}

func serve(words []string) error {
	if len(words) > 0 {
		return fmt.Errorf("%q is not for it: it has no flags, and takes what it is to be as a line of JSON on its input (lib/network/network.ts)", words[0])
	}
	return link.Serve(os.Stdin, os.Stdout)
}
