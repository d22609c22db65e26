package link

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// kernelCounters are the kernel's own counters of a namespace. The files were opened inside it, and can be read from outside.
type kernelCounters struct{ snmp, netstat, devices *os.File }

// kernelCounts are what they say, since the namespace was made.
type kernelCounts struct{ retransmits, listenOverflows, deviceDrops int64 }

// openKernelCounters opens them for the calling thread's namespace.
func openKernelCounters() (kernelCounters, error) {
	var k kernelCounters
	for name, file := range map[string]**os.File{"snmp": &k.snmp, "netstat": &k.netstat, "dev": &k.devices} {
		path := "/proc/thread-self/net/" + name
		var err error
		if *file, err = os.Open(path); err != nil {
			return k, fmt.Errorf("%s cannot be opened: %w", path, reason(err))
		}
	}
	return k, nil
}

func (k kernelCounters) read() (c kernelCounts, err error) {
	if c.retransmits, err = k.field(k.snmp, "Tcp:", "RetransSegs"); err != nil {
		return c, err
	}
	if c.listenOverflows, err = k.field(k.netstat, "TcpExt:", "ListenOverflows"); err != nil {
		return c, err
	}
	c.deviceDrops, err = k.drops()
	return c, err
}

// field reads a value from a file in which each group has a line of names and then one of values.
func (k kernelCounters) field(file *os.File, group, name string) (int64, error) {
	text, err := readAll(file)
	if err != nil {
		return 0, err
	}
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != group {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		for i := range min(len(names), len(words)) {
			if names[i] == name {
				return strconv.ParseInt(words[i], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("the kernel does not tell %s %s", group, name)
}

// drops are packets that the device dropped, in and out: its own counters, columns 4 and 12 of its line.
func (k kernelCounters) drops() (int64, error) {
	text, err := readAll(k.devices)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		name, values, found := strings.Cut(line, ":")
		columns := strings.Fields(values)
		if !found || strings.TrimSpace(name) != device || len(columns) < 12 {
			continue
		}
		in, err := strconv.ParseInt(columns[3], 10, 64)
		if err != nil {
			return 0, err
		}
		out, err := strconv.ParseInt(columns[11], 10, 64)
		return in + out, err
	}
	return 0, fmt.Errorf("the device %s is gone", device)
}

// readAll reads a file of /proc anew, from its beginning.
func readAll(file *os.File) (string, error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, math.MaxInt64))
	return string(text), err
}
