package link

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

const (
	// longestLine holds an order with more settings than a kernel has.
	longestLine = 1 << 20
	// wordsAhead may be asked for before one is answered.
	wordsAhead = 64
)

// Serve reads an order and then the words "counts", "mark" and "report", each on a line, and answers each with a line. It returns nil as
// soon as its input ends, even during a report; else what is wrong with the input, or what the system refuses.
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
	asked, ended := make(chan question, wordsAhead), make(chan error, 2)
	go func() { ended <- listen(lines, asked) }()
	go func() { ended <- answer(link, asked, answers) }()
	select {
	case err = <-ended:
	case err = <-link.Failed:
	}
	return err
}

// question is what a word asks of a link.
type question func(*Link) (any, error)

// questions by the words for them.
var questions = map[string]question{
	"counts": func(l *Link) (any, error) { return l.Counts(false) },
	"mark":   func(l *Link) (any, error) { return l.Counts(true) },
	"report": func(l *Link) (any, error) { return l.Report() },
}

// listen passes on what each word asks, until the input ends or has something else in it.
func listen(lines *bufio.Scanner, asked chan<- question) error {
	for lines.Scan() {
		ask, known := questions[lines.Text()]
		if !known {
			return fmt.Errorf("%.40q is nothing that it knows; counts, mark and report are", lines.Text())
		}
		asked <- ask
	}
	return endOf(lines)
}

// answer gives what is asked for each time.
func answer(link *Link, asked <-chan question, answers *json.Encoder) error {
	for ask := range asked {
		a, err := ask(link)
		if err != nil {
			return err
		}
		if err := answers.Encode(a); err != nil {
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
