package headers

import "strconv"

const (
	// MaxBytes is for the headers and trailers of a response, with 1xx responses before it. It keeps a broken server from filling the memory.
	MaxBytes = 64 << 10
	TLSAlert = 21 // TLSAlert is the type of the record by which a TLS server refuses a request without TLS.
)

// Faults of several protocols.
const (
	TooLong     = "headers are longer than 64 KiB"
	NotTrailers = "headers after the response's headers are not trailers"
	SpeaksTLS   = "the server speaks TLS on this port; use https://"
)

// LengthBits bounds lengths: sums of longer ones could overflow.
const LengthBits = 60

// Number reads a number without a sign; -1 is none.
func Number(digits []byte) int64 {
	n, err := strconv.ParseUint(string(digits), 10, LengthBits)
	if err != nil {
		return -1
	}
	return int64(n)
}

// SetLength sets a Content-Length (-1: not a number), which must equal an earlier one (-1: none). It returns what is wrong.
func SetLength(length *int64, to int64) (fault string) {
	if to < 0 {
		return "Content-Length is not a number"
	}
	if *length >= 0 && *length != to {
		return "two Content-Lengths differ"
	}
	*length = to
	return ""
}
