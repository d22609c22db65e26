// Command responder answers every request with the same response, at the least cost: what a load generator reaches with
// it is the generator's own ceiling. It listens on a free port of 127.0.0.1, which its first line of output names, until
// it gets TERM or INT.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"bakeoff.invalid/xk6-loadgen/responder"
)

const usage = `usage: responder --protocol http/1.1|h2|h2c --body-bytes N [--certificate FILE] [--threads T]

  --protocol     what is spoken; http/1.1 answers HTTP/1.0 too, h2c is HTTP/2 without TLS
  --body-bytes   the length of every response's body
  --certificate  PEM file with a key and its chain: TLS is spoken
  --threads      event loops, 1 unless told
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(words []string, out, complaints io.Writer) int {
	options, err := parse(words)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		return 0
	}
	// Before the line that says it listens: who reads that may send the signal.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	var r *responder.Responder
	if err == nil {
		r, err = responder.Start(options)
	}
	if err != nil {
		fmt.Fprintf(complaints, "responder: %s\n", err)
		return 2
	}
	fmt.Fprintf(out, "listening %s\n", r.Address())
	<-end
	return 0
}

func parse(words []string) (responder.Options, error) {
	var o responder.Options
	var protocol string
	flags := flag.NewFlagSet("responder", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&protocol, "protocol", "", "")
	flags.Int64Var(&o.BodyBytes, "body-bytes", -1, "")
	flags.StringVar(&o.Certificate, "certificate", "", "")
	flags.IntVar(&o.Threads, "threads", 1, "")
	if err := flags.Parse(words); err != nil {
		return o, err
	}
	o.Protocol = responder.Protocol(protocol)
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is no flag; see responder --help", flags.Arg(0))
	case protocol == "":
		return o, errors.New("--protocol is missing: http/1.1, h2 or h2c")
	case o.BodyBytes < 0:
		return o, errors.New("--body-bytes is missing: the length of every response's body, 0 or more")
	}
	return o, nil
}
