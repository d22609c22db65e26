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
// returns nil when its input ends, at once, even in the middle of a report; else what is wrong with the input, or what the
// system refuses.
func Serve(in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	lines.Buffer(nil, longestLine)
	if !lines.Scan() {
		return endOf(lines)
	}
	order, err := parseOrder(lines.Bytes())
	if err != nil {
		return err
	}
	link, ready, err := Start(order)
	if err != nil {
		return err
	}
	if err := answers.Encode(ready); err != nil {
		return fmt.Errorf("nobody takes its output: %w", err)
	}
	asked, end := make(chan struct{}), make(chan error, 1)
	go func() { end <- listen(lines, asked) }()
	reported := make(chan error, 1)
	go func() { reported <- report(link, asked, answers) }()
	select {
	case err = <-end:
	case err = <-reported:
	case err = <-link.Failed:
	}
	return err
}

// listen tells of each report that is asked for, until the input ends or has something else in it.
func listen(lines *bufio.Scanner, asked chan<- struct{}) error {
	for lines.Scan() {
		if word := lines.Text(); word != "report" {
			return fmt.Errorf("%.40q is nothing that it knows; report is", word)
		}
		asked <- struct{}{}
	}
	return endOf(lines)
}

// report gives a report each time.
func report(link *Link, asked <-chan struct{}, answers *json.Encoder) error {
	for range asked {
		r, err := link.Report()
		if err != nil {
			return err
		}
		if err := answers.Encode(r); err != nil {
			return fmt.Errorf("nobody takes its output: %w", err)
		}
	}
	return nil
}

func endOf(lines *bufio.Scanner) error {
	if err := lines.Err(); err != nil {
		return fmt.Errorf("its input cannot be read: %w", err)
	}
	return nil
}
