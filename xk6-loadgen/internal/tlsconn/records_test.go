package tlsconn

import (
	"crypto"
	"testing"
)

// BenchmarkRecord is one record of 1 kB, sealed and opened.
func BenchmarkRecord(b *testing.B) {
	secret := make([]byte, crypto.SHA256.Size())
	s := Suite{hash: crypto.SHA256, keyBytes: 16}
	in, err := NewHalf13(s, secret)
	if err != nil {
		b.Fatal(err)
	}
	out, _ := NewHalf13(s, secret)
	content, record := make([]byte, 1000), []byte(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		record = out.Seal(record[:0], ApplicationData, content)
		if _, _, err := in.Open(record); err != nil {
			b.Fatal(err)
		}
	}
}

func TestARecordAllocatesNothing(t *testing.T) {
	for protection := range protections {
		c, server := established(t, protection)
		content, record := make([]byte, 1000), make([]byte, 0, 2000)
		if n := testing.AllocsPerRun(100, func() {
			record = server.Seal(record[:0], ApplicationData, content)
			if event, plain, _ := c.Next(record); event != Content || len(plain) != len(content) {
				t.Fatalf("%s: %v, %d bytes: %s", protection, event, len(plain), c.Fault)
			}
		}); n > 0 {
			t.Errorf("%s: %g allocations", protection, n)
		}
	}
}
