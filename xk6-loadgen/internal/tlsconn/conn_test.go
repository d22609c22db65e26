package tlsconn

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"slices"
	"strings"
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

func TestRecordsOfAnyShape(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 4000)
	for protection := range protections {
		for name, before := range map[string]func(server *Half) []byte{
			"an empty one":        func(server *Half) []byte { return server.SealOne(nil, ApplicationData, nil) },
			"a warning":           func(server *Half) []byte { return server.SealOne(nil, Alert, []byte{1, alertUserCancelled}) },
			"a handshake message": func(server *Half) []byte { return server.Seal(nil, Handshake, make([]byte, 40_000)) },
			"padding": func(server *Half) []byte {
				if !server.is13 {
					return nil
				}
				// The content's type, then zeros; SealOne adds one more.
				return server.SealOne(nil, 0, append([]byte{byte(ApplicationData)}, make([]byte, 1000)...))
			},
		} {
			c, server := established(t, protection)
			stream := server.Seal(before(server), ApplicationData, content)
			var got []byte
			event := Content
			for event == Content {
				var plain []byte
				event, plain, stream = c.Next(stream)
				got = append(got, plain...)
			}
			if event != None || !bytes.Equal(got, content) {
				t.Errorf("%s, after %s: %d of %d bytes, %v %s", protection, name, len(got), len(content), event, c.Fault)
			}
		}
	}
}

func TestIllegalRecordsAreFaults(t *testing.T) {
	flip := func(record []byte, at int) []byte {
		record[(at+len(record))%len(record)] ^= 1
		return record
	}
	one := func(kind RecordType, content ...byte) func(*Half) []byte {
		return func(server *Half) []byte { return server.SealOne(nil, kind, content) }
	}
	plain := func(bytes string) func(*Half) []byte { return func(*Half) []byte { return []byte(bytes) } }
	for protection := range protections {
		for name, illegal := range map[string]func(server *Half) []byte{
			"a bit of the content flipped": func(server *Half) []byte { return flip(server.SealOne(nil, ApplicationData, make([]byte, 50)), 20) },
			"a bit of the tag flipped":     func(server *Half) []byte { return flip(server.SealOne(nil, ApplicationData, []byte("abc")), -1) },
			"another type":                 func(server *Half) []byte { return flip(server.SealOne(nil, ApplicationData, []byte("abc")), 0) },
			"no type of TLS":               plain("\x63\x03\x03\x00\x05hello"),
			"HTTP in the middle of it":     plain("HTTP/1.1 200 OK\r\n\r\n"),
			"not encrypted":                plain("\x17\x03\x03\x00\x20" + strings.Repeat("x", 32)),
			"too short for a tag":          plain("\x17\x03\x03\x00\x05hello"),
			"empty":                        plain("\x17\x03\x03\x00\x00"),
			"longer than TLS allows":       plain("\x17\x03\x03\xff\xff"),
			"content longer than 16 KiB":   one(ApplicationData, make([]byte, 16385)...),
			"one twice": func(server *Half) []byte {
				record := server.SealOne(nil, ApplicationData, nil)
				return append(bytes.Clone(record), record...)
			},
			"one left out": func(server *Half) []byte {
				server.SealOne(nil, ApplicationData, nil)
				return server.SealOne(nil, ApplicationData, nil)
			},
			"a change of ciphers":      one(ChangeCipherSpec, 1),
			"an alert of one byte":     one(Alert, 2),
			"an alert of three bytes":  one(Alert, 2, 80, 0),
			"the alert internal_error": one(Alert, 2, 80),
			"an alert nobody knows":    one(Alert, 2, 199),
			"a key update":             one(Handshake, 24, 0, 0, 1, 0),
			"padding only":             one(0, make([]byte, 100)...),
		} {
			c, server := established(t, protection)
			if !c.in.is13 && (name == "a key update" || name == "padding only") {
				continue
			}
			if event, _, _ := c.Next(illegal(server)); event != Fault || c.Fault == "" {
				t.Errorf("%s, %s: %v %q", protection, name, event, c.Fault)
			}
		}
	}
}

// The suites of TLS 1.3 have the keys and hashes of those of TLS 1.2, which the engine's tests negotiate with a server.
func TestEveryCipherOfTLS13(t *testing.T) {
	for id, like := range map[uint16]uint16{
		tls.TLS_AES_128_GCM_SHA256:       tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_AES_256_GCM_SHA384:       tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_CHACHA20_POLY1305_SHA256: tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	} {
		want, _ := SuiteOf(like)
		if got, err := SuiteOf(id); err != nil || got != want {
			t.Errorf("%s: %+v, want %+v: %v", tls.CipherSuiteName(id), got, want, err)
		}
	}
}
