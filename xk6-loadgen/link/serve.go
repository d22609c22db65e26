package link

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// longestLine holds an order with more settings than a kernel has.
const longestLine = 1 << 20

// Serve reads an order and then the word "report" as often as it comes, each on a line, and answers each with a line. It
// returns nil when its input ends, at once; else what is wrong with the input, or what the system refuses.
func Serve(in io.Reader, out io.Writer) error {
	lines, end := make(chan []byte), make(chan error, 1)
	go func() {
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, longestLine)
		for scanner.Scan() {
			lines <- append([]byte(nil), scanner.Bytes()...)
		}
		end <- scanner.Err()
	}()
	failed := make(chan error, 1)
	go func() { failed <- answer(lines, json.NewEncoder(out)) }()
	select {
	case err := <-end:
		if err != nil {
			return fmt.Errorf("its input cannot be read: %w", err)
		}
		return nil
	case err := <-failed:
		return err
	}
}

// answer answers until something is wrong.
func answer(lines <-chan []byte, out *json.Encoder) error {
	order, err := parseOrder(<-lines)
	if err != nil {
		return err
	}
	link, ready, err := Start(order)
	if err != nil {
		return err
	}
	if err := out.Encode(ready); err != nil {
		return fmt.Errorf("nobody takes its output: %w", err)
	}
	for {
		select {
		case err := <-link.Failed:
			return err
		case line := <-lines:
			if string(line) != "report" {
				return fmt.Errorf("%.40q is not what it is asked; report is", line)
			}
			report, err := link.Report()
			if err != nil {
				return err
			}
			if err := out.Encode(report); err != nil {
				return fmt.Errorf("nobody takes its output: %w", err)
			}
		}
	}
}
