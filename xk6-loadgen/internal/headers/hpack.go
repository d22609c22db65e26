// Package headers reads what a load generator has to know of a response's headers, and no more.
//
// Decoder is HPACK (RFC 7541), for one connection of HTTP/2. It decodes whole blocks, so that its dynamic table is right, but keeps only
// sizes, :status and content-length. A load has the same few blocks again and again, so two caches come first: one of the connection, for
// blocks that refer to its table, and one that connections share, for blocks that spell their headers out. No call allocates once its
// buffers have grown.
//
// What all protocols read alike is in values.go.
//
//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package headers

import (
	"bytes"
	"slices"

	"golang.org/x/net/http2/hpack"
)

const (
	TableBytes       = 4096 // TableBytes is the size of our dynamic table, the default.
	entryOverhead    = 32
	maxInteger       = 1 << 30 // greater indexes and lengths are malformed: no block is as long
	maxCachedBlock   = 1 << 10 // longer blocks are decoded each time
	maxRepeatedBlock = 64      // maxRepeatedBlock is kept for each connection.
)

type fieldKind uint8

const (
	fieldOther fieldKind = iota
	fieldStatus
	fieldContentLength
	fieldForbidden // fieldForbidden makes a response malformed: an upper-case name, or a pseudo-header other than :status.
)

// field is what the decoder keeps of a header: sizes for the dynamic table and for Block.DecodedBytes, and a number where it matters.
type field struct {
	nameBytes, valueBytes int32
	kind                  fieldKind
	value                 int64 // -1 if it is not a number
}

// Block is what a header block says, without its text.
type Block struct {
	Status       int // 0 without one; Length is the content-length, -1: none
	Length       int64
	DecodedBytes int64  // DecodedBytes are of names and values.
	hasRegular   bool   // not only pseudo-headers so far
	Malformed    string // Malformed says how it violates RFC 9113, sections 8.2 and 8.3.
}

// Fault says what is wrong with a block of a response of HTTP/2 or 3 whose status so far is this one; 0: its head has not come yet.
func (b *Block) Fault(status int) string {
	switch {
	case b.Malformed != "":
		return b.Malformed
	case status != 0 && b.Status != 0:
		return NotTrailers
	case status == 0 && b.Status == 0:
		return "a response has no :status"
	case b.Status == 101:
		return "an informational response switches protocols"
	}
	return ""
}

// Cache has the last block without a reference to the dynamic table, and what it inserted: nginx sends the same until the Date changes.
type Cache struct {
	bytes    []byte
	block    Block
	inserted []field
	version  int // version is another one for other bytes.
}

// staticFields is the static table (RFC 7541, appendix A), from 1 on.
var staticFields = func() (fields [62]field) {
	decoder := hpack.NewDecoder(0, nil)
	for i := 1; i < len(fields); i++ {
		decoder.SetEmitFunc(func(f hpack.HeaderField) {
			fields[i] = field{nameBytes: int32(len(f.Name)), kind: kindOf([]byte(f.Name))}
			fields[i].setValue([]byte(f.Value))
		})
		decoder.Write([]byte{0x80 | byte(i)}) //nolint:errcheck // an index of the static table
	}
	return fields
}()

// kindOf is what a name means to a load generator. RFC 9113, sections 8.2.1 and 8.3.2, say which a response may have.
func kindOf(name []byte) fieldKind {
	switch string(name) {
	case ":status":
		return fieldStatus
	case "content-length":
		return fieldContentLength
	}
	if len(name) == 0 || name[0] == ':' {
		return fieldForbidden
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' {
			return fieldForbidden
		}
	}
	return fieldOther
}

// setValue keeps a value's length, and its number where that matters.
func (f *field) setValue(value []byte) {
	f.valueBytes, f.value = int32(len(value)), -1
	if f.kind == fieldStatus || f.kind == fieldContentLength {
		f.value = Number(value)
	}
}

// tableBytes is the field's size in a dynamic table (RFC 7541, section 4.1).
func (f *field) tableBytes() int { return int(f.nameBytes) + int(f.valueBytes) + entryOverhead }

// Add adds a field that another decoder has read, such as that of QPACK. The block begins with a length of -1.
func (b *Block) Add(name, value string) {
	f := field{nameBytes: int32(len(name)), kind: kindOf([]byte(name))}
	f.setValue([]byte(value))
	b.add(&f)
}

// add adds a field to a block, and notes what is not allowed there.
func (b *Block) add(f *field) {
	b.DecodedBytes += int64(f.nameBytes) + int64(f.valueBytes)
	switch f.kind {
	case fieldStatus:
		switch {
		case b.hasRegular:
			b.Malformed = ":status comes after another header"
		case b.Status != 0:
			b.Malformed = "two :status headers"
		case f.valueBytes != 3 || f.value < 100 || f.value > 599:
			b.Malformed = ":status is not 100 to 599"
		default:
			b.Status = int(f.value)
		}
	case fieldOther:
		b.hasRegular = true
	case fieldContentLength:
		b.hasRegular = true
		if fault := SetLength(&b.Length, f.value); fault != "" {
			b.Malformed = fault
		}
	case fieldForbidden:
		b.Malformed = "a header name is not allowed in a response"
	}
}

// Decoder is a connection's decoder, with its dynamic table of sizes.
type Decoder struct {
	entries     []field // a ring, the newest at head
	head, count int
	bytes       int
	maxBytes    int
	strings     *Strings
	// repeated is the last block if it inserted nothing, and meaning what it says as long as the table stays: servers that index
	// their headers send the same few bytes until the Date changes.
	repeated []byte
	meaning  Block
	// filled bytes were inserted by the last blocks, all this version of the cache. Once they fill the table, more of them change nothing.
	filled, version int
}

// NewDecoder is the decoder of a new connection. Connections may share the strings, if one of them decodes at a time.
func NewDecoder(strings *Strings) Decoder { return Decoder{maxBytes: TableBytes, strings: strings} }

// Strings are buffers for Huffman-coded strings.
type Strings struct{ name, value bytes.Buffer }

// Decode reads a whole block. After a fault the connection cannot go on (RFC 9113, section 4.3).
func (d *Decoder) Decode(p []byte, cache *Cache) (Block, string) {
	if len(p) > 0 && string(p) == string(d.repeated) {
		return d.meaning, ""
	}
	if len(p) > 0 && len(p) == len(cache.bytes) && string(p) == string(cache.bytes) {
		if d.version != cache.version {
			d.version, d.filled = cache.version, 0
		}
		if d.filled < TableBytes {
			for i := range cache.inserted {
				d.filled += cache.inserted[i].tableBytes()
				d.insert(&cache.inserted[i])
				d.repeated = d.repeated[:0]
			}
		}
		return cache.block, ""
	}
	b := Block{Length: -1}
	r, cacheable, first := reader{rest: p}, len(p) <= maxCachedBlock, true
	cache.bytes, cache.inserted = cache.bytes[:0], cache.inserted[:0]
	d.repeated = d.repeated[:0]
	cache.version++
	changes := false
	for len(r.rest) > 0 {
		c := r.rest[0]
		if c&0xe0 == 0x20 {
			size := r.integer(5) // A dynamic table size update may only come first
			if r.fault != "" || size > TableBytes || !first {
				return b, "a table size update is not allowed"
			}
			cacheable, changes = false, true
			d.maxBytes = size
			d.evict(0)
			continue
		}
		first = false
		// Indexed (1), or a literal: with indexing (01), without (0000), never indexed (0001).
		indexed, inserted, prefix := c&0x80 != 0, c&0xc0 == 0x40, 4
		switch {
		case indexed:
			prefix = 7
		case inserted:
			prefix = 6
		}
		index := r.integer(prefix)
		f, known := d.at(index)
		switch {
		case r.fault != "":
		case !known && (indexed || index > 0):
			r.fault = "an index is beyond the table"
		case !known:
			name := r.text(&d.strings.name)
			f.nameBytes, f.kind = int32(len(name)), kindOf(name)
		}
		if !indexed {
			f.setValue(r.text(&d.strings.value))
		}
		if r.fault != "" {
			return b, r.fault
		}
		b.add(&f)
		cacheable = cacheable && index < len(staticFields)
		if inserted {
			changes = true
			d.insert(&f)
			cache.inserted = append(cache.inserted, f)
		}
	}
	if cacheable && len(p) > 0 {
		cache.bytes = append(cache.bytes, p...)
		cache.block = b
	} else if !changes && len(p) <= maxRepeatedBlock {
		d.repeated, d.meaning = append(d.repeated, p...), b
	}
	return b, ""
}

// at is the field at an index of both tables (RFC 7541, section 2.3.3). Index 0 is not used.
func (d *Decoder) at(index int) (f field, known bool) {
	if index < len(staticFields) {
		return staticFields[index], index > 0
	}
	if index -= len(staticFields); index >= d.count {
		return f, false
	}
	return d.entries[(d.head+index)%len(d.entries)], true
}

// insert adds a field at the head of the dynamic table. One that is larger than the table only empties it (RFC 7541, section 4.4).
func (d *Decoder) insert(f *field) {
	size := f.tableBytes()
	d.evict(size)
	if size > d.maxBytes {
		return
	}
	if d.count == len(d.entries) {
		d.entries = append(slices.Concat(d.entries[d.head:], d.entries[:d.head]), make([]field, max(8, d.count))...)
		d.head = 0
	}
	d.head = (d.head - 1 + len(d.entries)) % len(d.entries)
	d.entries[d.head] = *f
	d.count++
	d.bytes += size
}

// evict removes the oldest fields until there is room for so many bytes more.
func (d *Decoder) evict(room int) {
	for d.count > 0 && d.bytes+room > d.maxBytes {
		d.count--
		d.bytes -= d.entries[(d.head+d.count)%len(d.entries)].tableBytes()
	}
}

// reader reads a block piece by piece. fault is the first malformed piece.
type reader struct {
	rest  []byte
	fault string
}

// integer has a prefix of so many bits (RFC 7541, section 5.1).
func (r *reader) integer(prefix int) int {
	full := 1<<prefix - 1
	n := int(r.rest[0]) & full
	r.rest = r.rest[1:]
	if n < full {
		return n
	}
	for i, c := range r.rest {
		if n += int(c&0x7f) << (7 * i); n > maxInteger || i == 5 {
			break
		}
		if c&0x80 == 0 {
			r.rest = r.rest[i+1:]
			return n
		}
	}
	r.fault = "an index is malformed"
	return 0
}

// text reads a string (RFC 7541, section 5.2), valid until the buffer's next use.
func (r *reader) text(buffer *bytes.Buffer) (s []byte) {
	if r.fault != "" {
		return nil
	}
	if len(r.rest) == 0 {
		r.fault = "a header is cut off"
		return nil
	}
	isHuffman := r.rest[0]&0x80 != 0
	length := r.integer(7)
	if r.fault != "" || length > len(r.rest) {
		r.fault = "a string is longer than its block"
		return nil
	}
	s, r.rest = r.rest[:length], r.rest[length:]
	if !isHuffman {
		return s
	}
	buffer.Reset()
	if _, err := hpack.HuffmanDecode(buffer, s); err != nil {
		r.fault = "a string's Huffman code is malformed"
	}
	return buffer.Bytes()
}
