package engine

import (
	"bytes"

	"golang.org/x/net/http2/hpack"
)

// HPACK (RFC 7541) as a load generator needs it: blocks are decoded wholly, so that the dynamic table is right, but of a
// header only its size is kept and the two values that matter, :status and content-length.

const (
	// hpackTableBytes is the size of the dynamic table that we allow the server: the default, nothing is said about it.
	hpackTableBytes = 4096
	// hpackEntryOverhead counts towards the table's size (RFC 7541, section 4.1).
	hpackEntryOverhead = 32
	// A header number needs no more than this.
	maxHpackInteger = 1 << 30
	maxCachedBlock  = 1 << 10
)

// fieldKind is what a header's name means here.
type fieldKind uint8

const (
	fieldOther fieldKind = iota
	fieldStatus
	fieldContentLength
	// fieldForbidden makes a response malformed: an upper-case name, or a pseudo-header that is not :status.
	fieldForbidden
)

// field is what is kept of a header. value is -1 when it is no number.
type field struct {
	nameBytes, valueBytes int32
	kind                  fieldKind
	value                 int64
}

// block is what a header block means.
type block struct {
	// status is 0 when there was none; length is the content-length, -1: none.
	status int
	length int64
	// decodedBytes are of names and values.
	decodedBytes int64
	// hasRegular: a header that is no pseudo-header has been seen.
	hasRegular bool
	// malformed: RFC 9113, section 8.2 and 8.3, forbid it. Its HPACK was right.
	malformed string
}

// blockCache remembers the last block that did not use the dynamic table, what it meant and what it put into the table:
// nginx, for one, spells its headers out each time, so it sends the same bytes again until its date changes.
type blockCache struct {
	bytes    []byte
	block    block
	inserted []field
}

// staticFields are the entries of the static table (RFC 7541, appendix A), from 1 on, as the hpack package has them.
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
		// RFC 9113, section 8.2.1.
		if c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' {
			return fieldForbidden
		}
	}
	return fieldOther
}

func (f *field) setValue(value []byte) {
	f.valueBytes, f.value = int32(len(value)), -1
	if f.kind == fieldStatus || f.kind == fieldContentLength {
		f.value = decimal(value)
	}
}

func (f *field) tableBytes() int { return int(f.nameBytes) + int(f.valueBytes) + hpackEntryOverhead }

// add takes a header into the block.
func (b *block) add(f *field) {
	b.decodedBytes += int64(f.nameBytes) + int64(f.valueBytes)
	switch f.kind {
	case fieldStatus:
		switch {
		case b.hasRegular:
			b.malformed = ":status comes after another header"
		case b.status != 0:
			b.malformed = "two :status headers"
		case f.valueBytes != 3 || f.value < 100 || f.value > 599:
			b.malformed = ":status is not 100 to 599"
		default:
			b.status = int(f.value)
		}
	case fieldOther:
		b.hasRegular = true
	case fieldContentLength:
		b.hasRegular = true
		switch {
		case f.value < 0:
			b.malformed = "content-length is not a number"
		case b.length >= 0 && b.length != f.value:
			b.malformed = "two content-lengths differ"
		default:
			b.length = f.value
		}
	case fieldForbidden:
		b.malformed = "a header name is not allowed in a response"
	}
}

// hpackDecoder has the dynamic table of one connection.
type hpackDecoder struct {
	// entries is a ring, the newest at head.
	entries     []field
	head, count int
	bytes       int
	maxBytes    int
	strings     *hpackStrings
}

// hpackStrings is where strings are decoded; one does for a loop.
type hpackStrings struct{ name, value bytes.Buffer }

func newHpackDecoder(strings *hpackStrings) hpackDecoder {
	return hpackDecoder{maxBytes: hpackTableBytes, strings: strings}
}

// decode reads a whole block. The text, here and below, is a fault of HPACK itself, or empty: after one the table is no longer right,
// and the connection cannot go on (RFC 9113, section 4.3).
func (d *hpackDecoder) decode(p []byte, cache *blockCache) (block, string) {
	if len(p) > 0 && len(p) == len(cache.bytes) && string(p) == string(cache.bytes) {
		for i := range cache.inserted {
			d.insert(&cache.inserted[i])
		}
		return cache.block, ""
	}
	b := block{length: -1}
	whole, cacheable, first := p, len(p) <= maxCachedBlock, true
	cache.bytes, cache.inserted = cache.bytes[:0], cache.inserted[:0]
	for len(p) > 0 {
		switch c := p[0]; {
		case c&0x80 != 0:
			// Indexed.
			index, rest, ok := hpackInteger(p, 7)
			if !ok {
				return b, "an index is malformed"
			}
			f := d.at(index)
			if f == nil {
				return b, "an index is beyond the table"
			}
			p, cacheable = rest, cacheable && index < len(staticFields)
			b.add(f)
		case c&0xe0 == 0x20:
			// Dynamic table size update: at the start only.
			size, rest, ok := hpackInteger(p, 5)
			if !ok || size > hpackTableBytes || !first {
				return b, "a table size update is not allowed"
			}
			p, cacheable = rest, false
			d.maxBytes = size
			d.evict(0)
			continue
		default:
			// Literal: with incremental indexing (01), without (0000), never indexed (0001).
			indexed, prefix := c&0xc0 == 0x40, 4
			if indexed {
				prefix = 6
			}
			f, dynamic, rest, fault := d.literal(p, prefix)
			if fault != "" {
				return b, fault
			}
			p, cacheable = rest, cacheable && !dynamic
			b.add(&f)
			if indexed {
				d.insert(&f)
				cache.inserted = append(cache.inserted, f)
			}
		}
		first = false
	}
	if cacheable && len(whole) > 0 {
		cache.bytes = append(cache.bytes, whole...)
		cache.block = b
	}
	return b, ""
}

// literal reads a header whose value is spelt out, and its name too or by its index, which may be one of the dynamic table.
func (d *hpackDecoder) literal(p []byte, prefix int) (f field, dynamic bool, rest []byte, fault string) {
	index, rest, ok := hpackInteger(p, prefix)
	if !ok {
		return f, false, nil, "an index is malformed"
	}
	if index > 0 {
		named := d.at(index)
		if named == nil {
			return f, false, nil, "an index is beyond the table"
		}
		f.nameBytes, f.kind, dynamic = named.nameBytes, named.kind, index >= len(staticFields)
	} else {
		var name []byte
		if name, rest, fault = hpackString(rest, &d.strings.name); fault != "" {
			return f, false, nil, fault
		}
		f.nameBytes, f.kind = int32(len(name)), kindOf(name)
	}
	value, rest, fault := hpackString(rest, &d.strings.value)
	if fault != "" {
		return f, false, nil, fault
	}
	f.setValue(value)
	return f, dynamic, rest, ""
}

// at is the entry with this index (RFC 7541, section 2.3.3); nil: there is none.
func (d *hpackDecoder) at(index int) *field {
	if index < len(staticFields) {
		if index == 0 {
			return nil
		}
		return &staticFields[index]
	}
	if index -= len(staticFields); index >= d.count {
		return nil
	}
	return &d.entries[(d.head+index)%len(d.entries)]
}

// insert puts a header at the table's front; one that is larger than the table empties it.
func (d *hpackDecoder) insert(f *field) {
	size := f.tableBytes()
	d.evict(size)
	if size > d.maxBytes {
		return
	}
	if d.count == len(d.entries) {
		grown := make([]field, max(8, 2*d.count))
		for i := range d.count {
			grown[i] = d.entries[(d.head+i)%len(d.entries)]
		}
		d.entries, d.head = grown, 0
	}
	d.head = (d.head - 1 + len(d.entries)) % len(d.entries)
	d.entries[d.head] = *f
	d.count++
	d.bytes += size
}

// evict makes room for this many bytes.
func (d *hpackDecoder) evict(room int) {
	for d.count > 0 && d.bytes+room > d.maxBytes {
		d.count--
		d.bytes -= d.entries[(d.head+d.count)%len(d.entries)].tableBytes()
	}
}

// hpackInteger reads an integer with a prefix of this many bits (RFC 7541, section 5.1).
func hpackInteger(p []byte, prefix int) (n int, rest []byte, ok bool) {
	full := 1<<prefix - 1
	n = int(p[0]) & full
	if n < full {
		return n, p[1:], true
	}
	for i, shift := 1, 0; i < len(p) && shift <= 28; i, shift = i+1, shift+7 {
		n += int(p[i]&0x7f) << shift
		if n > maxHpackInteger {
			return 0, nil, false
		}
		if p[i]&0x80 == 0 {
			return n, p[i+1:], true
		}
	}
	return 0, nil, false
}

// hpackString reads a string (RFC 7541, section 5.2); what it returns is valid until the buffer's next use.
func hpackString(p []byte, buffer *bytes.Buffer) (s, rest []byte, fault string) {
	if len(p) == 0 {
		return nil, nil, "a header is cut off"
	}
	length, rest, ok := hpackInteger(p, 7)
	if !ok || length > len(rest) {
		return nil, nil, "a string is longer than its block"
	}
	s, rest = rest[:length], rest[length:]
	if p[0]&0x80 == 0 {
		return s, rest, ""
	}
	buffer.Reset()
	if _, err := hpack.HuffmanDecode(buffer, s); err != nil {
		return nil, nil, "a string's Huffman code is malformed"
	}
	return buffer.Bytes(), rest, ""
}
