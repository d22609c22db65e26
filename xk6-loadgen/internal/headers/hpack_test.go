package headers

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/racing"
)

// packed are byte strings in one, each with its length before it; unpack undoes it.
func packed(parts ...string) []byte {
	var b []byte
	for _, part := range parts {
		b = append(append(b, byte(len(part))), part...)
	}
	return b
}

func unpack(b []byte) (parts [][]byte) {
	for len(b) > 0 {
		n := min(int(b[0]), len(b)-1)
		parts = append(parts, b[1:1+n])
		b = b[1+n:]
	}
	return parts
}

// meaning is what a response's fields mean by RFC 9113, section 8: what a Decoder has to make of them.
func meaning(fields []hpack.HeaderField) (b Block) {
	b.Length = -1
	bad := func(f hpack.HeaderField) bool {
		if f.Name == ":status" {
			n, err := strconv.ParseUint(f.Value, 10, 16)
			twiceOrLate := b.Status != 0 || b.hasRegular
			b.Status = int(n)
			return err != nil || len(f.Value) != 3 || twiceOrLate || n < 100 || n > 599
		}
		b.hasRegular = true
		if f.Name == "content-length" {
			n, err := strconv.ParseUint(f.Value, 10, LengthBits)
			differs := b.Length >= 0 && b.Length != int64(n)
			b.Length = int64(n)
			return err != nil || differs
		}
		return f.Name == "" || f.Name[0] == ':' || slices.ContainsFunc([]byte(f.Name), func(c byte) bool { return c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' })
	}
	for _, f := range fields {
		b.DecodedBytes += int64(len(f.Name) + len(f.Value))
		if b.Malformed == "" && bad(f) {
			b.Malformed = "so it is"
		}
	}
	return b
}

// FuzzHPACK holds the decoder against that of golang.org/x/net: header blocks of one connection, each of them twice, so
// that what is remembered of a block is tried too.
func FuzzHPACK(f *testing.F) {
	var buffer bytes.Buffer
	encoder := hpack.NewEncoder(&buffer)
	encoded := func(fields ...string) string {
		buffer.Reset()
		for i := 0; i < len(fields); i += 2 {
			encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: fields[i] == "set-cookie"})
		}
		return buffer.String()
	}
	f.Add(packed(encoded(":status", "200", "server", "nginx", "content-length", "612"), encoded(":status", "200", "server", "nginx", "content-length", "612")))
	f.Add(packed(encoded(":status", "404", "x", strings.Repeat("y", 100)), encoded(":status", "404", "x", "", "set-cookie", "a=b")))
	encoder.SetMaxDynamicTableSize(64)
	f.Add(packed(encoded(":status", "299", "a", "b", "c", "d", "e", "f"), encoded(":status", "299", "c", "d")))
	f.Add(packed("\x3f\x21\x88\x40\x01x\x1f"+strings.Repeat("y", 31), "\x88\xbe"))
	f.Add(packed("\x88", "\x88\x80", "\x88\xbe"))
	f.Add(packed("\x88\x40\x01x\x01y", "\x20\x88\xbe"))
	f.Add(packed("\x3f\xe1\x1f\x20\x88", "\x3f\xe2\x1f\x88", "\x88\x20"))
	f.Add(packed("\x88\x5c\x0112", "\x88\x0f\x0d\x03612\x5c\x03613", "\x40\x01A\x00\x88", "\x08\x03099"))
	f.Add(packed("\x88\x00\x01a\x84\xff\xff\xff\xff", "\x88\x00\x01a\x81\x18", "\x88\x00\x81\x1f\x82\x1f\xff"))
	f.Add(packed("\xff\x80\x80\x80\x80\x00", "\x7f\x00\x01x", "\x00\x7f\xff\xff\xff\xff\x07"))
	// A block fills the table with 17 entries; a reference to the oldest of them, and another block, follow.
	short, long := "\x88\x40\x01z\x01w", "\x88\x40\x01x\x7f\x49"+strings.Repeat("y", 200)
	for _, reference := range []string{"\x88\xce", "\x88\xcf"} { // the second one to an entry that is lost
		f.Add(packed(append(append([]string{short}, slices.Repeat([]string{long}, 11)...), reference)...))
	}
	f.Add(packed(append(slices.Repeat([]string{long}, 11), short, "\x88\xbe")...))
	for _, field := range [][2]string{
		{":status", "abc"}, {":status", "20"}, {":status", "2000"}, {":status", "099"}, {":status", "600"}, {":status", ""}, {":status", "200"},
		{":path", "/"}, {":new", "x"}, {"Server", "x"}, {"a b", "x"}, {"a\r\nb", "x"}, {"", "x"},
		{"content-length", "five"}, {"content-length", "-5"}, {"content-length", "5, 5"}, {"content-length", ""}, {"content-length", "99999999999999999999"},
	} {
		encoder = hpack.NewEncoder(&buffer)
		f.Add(packed(encoded(":status", "200", field[0], field[1]), encoded(field[0], field[1], ":status", "200"), encoded(field[0], field[1])))
	}
	encoder = hpack.NewEncoder(&buffer)
	f.Add(packed(encoded(":status", "200", "content-length", "5", "content-length", "6"), encoded(":status", "200", "content-length", "5", "content-length", "5")))
	// Integers and strings that are too long or cut off, literals without a name in the table, and fields that are never indexed.
	for _, block := range []string{
		"\x88\xff\xff\xff\xff\xff\x07", "\x88\xff" + strings.Repeat("\x80", 100), "\x88\xff", "\x88\x00\x05ab", "\x88\x00\x01a\x05b", "\x88\x00\x01a", "\x88\x80",
		"\x00\x07:status\x03200\x00\x0econtent-length\x010", "\x18\x03200\x1f\x0d\x010\x0f\x27\x00", "\x88\x0f\x8d\x80\x00\x010",
	} {
		f.Add(packed(block))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mine, theirs, cache := NewDecoder(&Strings{}), hpack.NewDecoder(TableBytes, nil), &Cache{}
		other := NewDecoder(&Strings{}) // of another connection, which has the same cache and is the first to get every other block
		for i, part := range unpack(data) {
			if i%2 > 0 {
				other.Decode(part, cache)
			}
			for range 2 {
				got, fault := mine.Decode(bytes.Clone(part), cache)
				fields, err := theirs.DecodeFull(part)
				switch {
				case err == nil && fault == "a table size update is not allowed":
					// After a field it has to be refused (RFC 7541, section 4.2), which x/net does not do while its table is
					// empty.
					return
				case fault == "" && err != nil && strings.Contains(err.Error(), "size update MUST occur"):
					// Two at a block's start are allowed (section 4.2), x/net takes one.
					return
				case err == nil && fault != "" && bytes.Contains(part, []byte("\x80\x80")):
					// An integer longer than it need be may be refused (section 5.1).
					return
				}
				if (fault != "") != (err != nil) {
					t.Fatalf("block %d, %x: %q, x/net says %v", i, part, fault, err)
				}
				if err != nil {
					return
				}
				want := meaning(fields)
				if got.Malformed != "" {
					got.Malformed = want.Malformed
					if want.Malformed == "" {
						t.Fatalf("block %d, %x: malformed, but it says %v", i, part, fields)
					}
				}
				if want.Malformed != "" && got.Malformed != "" {
					got.Status, got.Length, got.hasRegular = want.Status, want.Length, want.hasRegular
				}
				if got != want {
					t.Fatalf("block %d, %x: %+v, want %+v of %v", i, part, got, want, fields)
				}
			}
		}
	})
}

func TestABlockAllocatesNothing(t *testing.T) {
	if racing.IsDetected() {
		t.Skip("under the race detector pools forget some of their buffers")
	}
	var buffer bytes.Buffer
	encoder := hpack.NewEncoder(&buffer)
	var blocks [][]byte
	for _, length := range []string{"612", "5", "612"} { // The last one refers to the dynamic table
		buffer.Reset()
		for _, f := range [][2]string{{":status", "200"}, {"server", "nginx"}, {"content-length", length}} {
			if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
				t.Fatal(err)
			}
		}
		blocks = append(blocks, bytes.Clone(buffer.Bytes()))
	}
	d, cache := NewDecoder(&Strings{}), &Cache{}
	if n := testing.AllocsPerRun(1000, func() {
		for _, p := range blocks {
			if b, fault := d.Decode(p, cache); fault != "" || b.Status != 200 {
				t.Fatalf("%x: %+v, %s", p, b, fault)
			}
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
