// Command delaylink is a network of two sides with a delay between them, in namespaces of its own. It reads its order from its input
// (lib/network/network.ts). It ends with its input, or by TERM or INT, and leaves nothing behind.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"bakeoff.invalid/xk6-loadgen/link"
)

// threads that run Go code at a time: one for each direction, one for answers and one for garbage collection.
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
		return fmt.Errorf("unknown argument %q: it has none, and reads its order as a line of JSON from its input (lib/network/network.ts)", words[0])
	}
	return link.Serve(os.Stdin, os.Stdout)
}
