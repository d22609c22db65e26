// Command delaylink is a network of two sides with a delay between them, in namespaces of its own. It reads its order from its input
// (lib/features/network/network.ts). It ends with its input, or by TERM or INT, and leaves nothing behind.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/link"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-end
		os.Exit(0)
	}()
	runtime.GOMAXPROCS(4) // for each direction, for answers and for garbage collection
	var err error
	if arguments := os.Args[1:]; len(arguments) > 0 {
		err = fmt.Errorf("unknown argument %q: it has none, and reads its order as a line of JSON from its input (lib/features/network/network.ts)", arguments[0])
	} else {
		err = link.Serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "delaylink: %s\n", err)
		os.Exit(1)
	}
}
