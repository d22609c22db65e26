package h3

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type countingReader struct {
	io.Reader
	read int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	return n, err
}

// Whatever a server sends, a response is one with a final status, or a fault.
func FuzzResponse(f *testing.F) {
	for _, parts := range [][]string{
		{"\x01\x03\x00\x00\xd9", "\x00\x05hello"}, {"\x01\x40\x03\x00\x00\xd9", "\x21\x00", "\x00\x00", "\x01\x02\x00\x00"},
		{""}, {"\x01\x03\x00\x00\xd8", "\x01\x03\x00\x00\xd9"}, {"\x01\xff\xff\xff\xff\xff\xff\xff\xff"}, {"\x00\x01a"}, {"\x01\x05\x00\x00\x28\x80\x01"},
	} {
		f.Add([]byte(strings.Join(parts, "")), uint8(3))
	}
	var blocks cache
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		from := &countingReader{Reader: iotest.OneByteReader(bytes.NewReader(data))}
		r := bufio.NewReaderSize(nil, int(piece))
		r.Reset(from)
		var s Response
		if s.read(r, &blocks) != nil {
			return
		}
		if s.Status < 200 || s.Status > 599 || from.read != int64(len(data)) || r.Buffered() > 0 || s.HeaderBytes+s.BodyBytes > from.read {
			t.Errorf("%+v of %d bytes, %d were read", s, len(data), from.read)
		}
	})
}

// Whatever a server sends on its control stream, it is read to its end or a fault, and names streams only by GOAWAY.
func FuzzControl(f *testing.F) {
	f.Add([]byte("\x04\x00\x07\x01\x08"), uint8(64))
	f.Add([]byte("\x04\x02\x01\x00\x0d\x01\x00\x40\x07\x01\x00"), uint8(1))
	f.Add([]byte("\x07\x01\x08"), uint8(3))
	f.Add([]byte("\x04\x00\x00\x00"), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		r := bufio.NewReaderSize(nil, int(piece))
		r.Reset(iotest.OneByteReader(bytes.NewReader(data)))
		named := 0
		err := readControl(r, func(uint64) { named++ })
		isBreach := errors.As(err, new(*Breach))
		if isEnd := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); isBreach == isEnd {
			t.Errorf("%v", err)
		}
		if named > 0 && (data[0] != frameSettings && data[0] != 0x40 && data[0] != 0x80 && data[0] != 0xc0 || named > bytes.Count(data, []byte{frameGoAway})) {
			t.Errorf("%d streams of %q", named, data)
		}
	})
}
