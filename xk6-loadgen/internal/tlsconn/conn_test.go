package tlsconn

import (
	"bytes"
	"crypto"
	"slices"
	"testing"
)

// protections are the forms that records have: of TLS 1.3, and of TLS 1.2 with a nonce in the record (AES-GCM) and without.
var protections = map[string]func() (Half, error){
	"TLS 1.3": func() (Half, error) {
		return NewHalf13(Suite{hash: crypto.SHA256, keyBytes: 16}, make([]byte, crypto.SHA256.Size()))
	},
	"TLS 1.2, AES-GCM": func() (Half, error) { return half12(Suite{hash: crypto.SHA384, keyBytes: 32}) },
	"TLS 1.2, ChaCha":  func() (Half, error) { return half12(Suite{hash: crypto.SHA256, keyBytes: 32, isChaCha: true}) },
}

// half12 is what a client receives by.
func half12(s Suite) (Half, error) {
	in, _, err := NewHalves12(s, make([]byte, 48), make([]byte, 32), make([]byte, 32))
	return in, err
}

// established is a connection after its handshake, and the server's half of what it receives.
func established(t testing.TB, protection string) (*Conn, *Half) {
	t.Helper()
	in, err := protections[protection]()
	if err != nil {
		t.Fatal(err)
	}
	server := in
	return &Conn{in: in}, &server
}

// FuzzNext has connections, after their handshake, receive records of any types and contents, and then bytes that are no record of the server.
// However they are cut into pieces, they have to mean the same, and nothing but the server's content may pass.
func FuzzNext(f *testing.F) {
	f.Add([]byte("hello"), []byte{byte(ApplicationData), byte(ApplicationData)}, []byte{}, 1)
	f.Add([]byte("hello"), []byte{byte(Handshake), byte(ApplicationData), byte(Alert)}, []byte("HTTP/1.1 400"), 7)
	f.Add(keyUpdate, []byte{byte(Handshake)}, []byte{}, 3)
	f.Add(closeNotify, []byte{byte(Alert), byte(ApplicationData)}, []byte{23, 3, 3, 0, 5, 1, 2, 3, 4, 5}, 1000)
	f.Fuzz(func(t *testing.T, content, kinds, other []byte, n int) {
		if len(content) > MaxPlaintextBytes || len(kinds) > 20 || slices.Contains(kinds, 0) {
			return // A type of 0 would be padding (RFC 8446, section 5.4)
		}
		if len(content)*len(kinds) > 1<<16 {
			return // byte by byte it would take seconds
		}
		play := func(protection string, n int) (events []Kind, got []byte) {
			c, server := established(t, protection)
			var stream []byte
			for _, kind := range kinds {
				stream = server.SealOne(stream, RecordType(kind), content)
			}
			stream = append(stream, other...)
			for len(stream) > 0 {
				piece := append(slices.Clone(c.Partial), stream[:min(n, len(stream))]...)
				stream = stream[min(n, len(stream)):]
				for event := Content; event != None; {
					var plain []byte
					event, plain, piece = c.Next(piece)
					if event != None {
						events, got = append(events, event), append(got, plain...)
					}
					if event == Fault {
						return events, got
					}
				}
			}
			return events, got
		}
		for protection := range protections {
			events, got := play(protection, 1<<20)
			pieceEvents, pieceGot := play(protection, max(1, n&0xfff))
			if !slices.Equal(events, pieceEvents) || !bytes.Equal(got, pieceGot) {
				t.Errorf("%s, whole: %v, %q, in pieces: %v, %q", protection, events, got, pieceEvents, pieceGot)
			}
			sent := bytes.Repeat(content, bytes.Count(kinds, []byte{byte(ApplicationData)}))
			if !bytes.HasPrefix(sent, got) || !slices.Contains(events, Fault) && len(got) < len(sent) {
				t.Errorf("%s: %q passed, %q was sent", protection, got, sent)
			}
		}
	})
}
