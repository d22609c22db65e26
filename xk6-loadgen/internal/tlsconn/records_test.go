package tlsconn

import "testing"

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
