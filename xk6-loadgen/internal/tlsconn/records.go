//gosec:disable G115 G407 -- the numbers are small, the nonce counts
package tlsconn

import (
	"cmp"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// RecordType says what a record has in it.
type RecordType byte

const (
	ChangeCipherSpec RecordType = 20
	Alert            RecordType = 21
	Handshake        RecordType = 22
	ApplicationData  RecordType = 23
)

const (
	HeaderBytes              = 5
	MaxPlaintextBytes        = 1 << 14
	maxGrowth13, maxGrowth12 = 256, 2048 // Protection may add so much to a record (RFC 8446, section 5.2; RFC 5246, section 6.2.3)
	nonceBytes               = 12
	// An AEAD of TLS adds a tag of 16 bytes; AES-GCM in TLS 1.2 sends 8 bytes of its nonce too.
	TagBytes, explicitNonceBytes = 16, 8
)

// Half is the protection of one direction of a connection: its key, its IV and the number of its next record.
type Half struct {
	aead       cipher.AEAD
	iv         [nonceBytes]byte
	seq        uint64
	explicit   bool // a part of the nonce is in the record (AES-GCM in TLS 1.2)
	is13       bool
	nonce      [nonceBytes]byte // nonce and additional are here so that records allocate nothing
	additional [13]byte
}

// Suite is what key derivation and records need to know of a cipher suite.
type Suite struct {
	hash     crypto.Hash
	keyBytes int
	isChaCha bool
}

// SuiteOf knows the suites of TLS 1.3, and those of TLS 1.2 that have forward secrecy and an AEAD.
func SuiteOf(id uint16) (Suite, error) {
	switch id {
	case tls.TLS_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:
		return Suite{hash: crypto.SHA256, keyBytes: 16}, nil
	case tls.TLS_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:
		return Suite{hash: crypto.SHA384, keyBytes: 32}, nil
	case tls.TLS_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return Suite{hash: crypto.SHA256, keyBytes: 32, isChaCha: true}, nil
	}
	return Suite{}, fmt.Errorf("cipher suite %s is not supported", tls.CipherSuiteName(id))
}

func (s Suite) aead(key []byte) (cipher.AEAD, error) {
	if s.isChaCha {
		return chacha20poly1305.New(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// NewHalf13 derives a direction's key and IV from its traffic secret (RFC 8446, section 7.3).
func NewHalf13(s Suite, secret []byte) (Half, error) {
	h := Half{is13: true}
	key, err := expandLabel(s.hash, secret, "key", s.keyBytes)
	if err == nil {
		h.aead, err = s.aead(key)
	}
	iv, ivErr := expandLabel(s.hash, secret, "iv", nonceBytes)
	copy(h.iv[:], iv)
	return h, cmp.Or(err, ivErr)
}

// expandLabel is HKDF-Expand-Label with an empty context (RFC 8446, section 7.1).
func expandLabel(hash crypto.Hash, secret []byte, label string, length int) ([]byte, error) {
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(info, "tls13 "+label...)
	info = append(info, 0)
	return hkdf.Expand(hash.New, secret, string(info), length)
}

// NewHalves12 derives the keys of both directions (RFC 5246, section 6.3). Record 0 of each was the Finished message, so they begin at 1.
func NewHalves12(s Suite, master, clientRandom, serverRandom []byte) (in, out Half, err error) {
	ivBytes := 4
	if s.isChaCha {
		ivBytes = nonceBytes
	}
	block := prf12(s.hash.New, master, "key expansion", slices.Concat(serverRandom, clientRandom), 2*(s.keyBytes+ivBytes))
	keys, ivs := block[:2*s.keyBytes], block[2*s.keyBytes:]
	for i, h := range []*Half{&out, &in} {
		*h = Half{seq: 1, explicit: !s.isChaCha}
		copy(h.iv[:], ivs[i*ivBytes:(i+1)*ivBytes])
		if h.aead, err = s.aead(keys[i*s.keyBytes : (i+1)*s.keyBytes]); err != nil {
			return in, out, err
		}
	}
	return in, out, nil
}

// prf12 is TLS 1.2's pseudo-random function, P_hash (RFC 5246, section 5), of `length` bytes.
func prf12(newHash func() hash.Hash, secret []byte, label string, seed []byte, length int) []byte {
	labelAndSeed := append([]byte(label), seed...)
	mac := hmac.New(newHash, secret)
	sum := func(parts ...[]byte) []byte {
		mac.Reset()
		for _, part := range parts {
			mac.Write(part)
		}
		return mac.Sum(nil)
	}
	var out []byte
	for a := sum(labelAndSeed); len(out) < length; a = sum(a) {
		out = append(out, sum(a, labelAndSeed)...)
	}
	return out[:length]
}

var errRecordSize = errors.New("a record is longer than TLS allows")

// setNonce makes the next record's nonce of IV and sequence number (RFC 8446, section 5.3). AES-GCM in TLS 1.2 has zeros in its IV there.
func (h *Half) setNonce() {
	h.nonce = h.iv
	tail := h.nonce[nonceBytes-8:]
	binary.BigEndian.PutUint64(tail, binary.BigEndian.Uint64(tail)^h.seq)
}

// additional12 is what TLS 1.2 authenticates beside the content (RFC 5246, section 6.2.3.3).
func (h *Half) additional12(kind RecordType, plaintext int) []byte {
	binary.BigEndian.PutUint64(h.additional[:], h.seq)
	h.additional[8] = byte(kind)
	binary.BigEndian.PutUint16(h.additional[9:], tls.VersionTLS12)
	binary.BigEndian.PutUint16(h.additional[11:], uint16(plaintext))
	return h.additional[:]
}

// Open decrypts a record, header included, in place.
func (h *Half) Open(record []byte) (RecordType, []byte, error) {
	kind, payload, additional := RecordType(record[0]), record[HeaderBytes:], record[:HeaderBytes]
	h.setNonce()
	if h.explicit {
		payload = payload[copy(h.nonce[nonceBytes-explicitNonceBytes:], payload):]
	}
	if !h.is13 {
		additional = h.additional12(kind, len(payload)-TagBytes)
	}
	plain, err := h.aead.Open(payload[:0], h.nonce[:], payload, additional)
	if err != nil {
		return 0, nil, errors.New("a record does not decrypt") // Or is too short, or has another type than it was sealed with
	}
	h.seq++
	if h.is13 {
		n := len(plain) // The content type is the last byte that is not padding
		for n > 0 && plain[n-1] == 0 {
			n--
		}
		if n == 0 {
			return 0, nil, errors.New("a record has no content type")
		}
		kind, plain = RecordType(plain[n-1]), plain[:n-1]
	}
	if len(plain) > MaxPlaintextBytes {
		return 0, nil, errRecordSize
	}
	return kind, plain, nil
}

// Seal appends p to dst in records of 16 KiB at most. p is copied once, since dst is encrypted in place.
func (h *Half) Seal(dst []byte, kind RecordType, p []byte) []byte {
	for len(p) > 0 {
		n := min(len(p), MaxPlaintextBytes)
		dst = h.SealOne(dst, kind, p[:n])
		p = p[n:]
	}
	return dst
}

// SealOne appends one record. In TLS 1.3 its type is encrypted behind the content (RFC 8446, section 5.2).
func (h *Half) SealOne(dst []byte, kind RecordType, p []byte) []byte {
	header := len(dst)
	outer, length := kind, len(p)+TagBytes
	if h.is13 {
		outer, length = ApplicationData, length+1
	} else if h.explicit {
		length += explicitNonceBytes
	}
	dst = append(dst, byte(outer), tls.VersionTLS12>>8, tls.VersionTLS12&0xff, byte(length>>8), byte(length))
	h.setNonce()
	if h.is13 {
		body := len(dst)
		dst = append(append(dst, p...), byte(kind))
		dst = h.aead.Seal(dst[:body], h.nonce[:], dst[body:], dst[header:body])
	} else {
		if h.explicit {
			dst = binary.BigEndian.AppendUint64(dst, h.seq)
		}
		dst = h.aead.Seal(dst, h.nonce[:], p, h.additional12(kind, len(p)))
	}
	h.seq++
	return dst
}
