//gosec:disable G304 -- paths of control groups
package linux

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// controlGroup is a control group whose CPU time is exact: that of processes that have ended is in it. from is the time at the tree's begin.
type controlGroup struct {
	file *os.File
	// unit is that of the figure in the file, in nanoseconds.
	unit, from, last int64
}

// ownGroup returns the control group that has these processes and no others; nil if there is none, or it cannot be read.
func ownGroup(processes map[int]*process) *controlGroup {
	for _, h := range hierarchies() {
		folder := h.folderOf(processes)
		if folder == "" || !holdsOnly(folder, processes) {
			continue
		}
		g := &controlGroup{unit: h.unit}
		var err error
		if g.file, err = os.Open(filepath.Join(folder, h.file)); err != nil {
			continue
		}
		runtime.AddCleanup(g, func(f *os.File) { f.Close() }, g.file) //nolint:errcheck // it was only read
		g.from = g.read()
		return g
	}
	return nil
}

// read returns the group's CPU time in nanoseconds; the last one known once the group is gone.
func (g *controlGroup) read() int64 {
	var text [64]byte
	n, _ := g.file.ReadAt(text[:], 0)
	figure := bytes.TrimPrefix(text[:n], []byte("usage_usec "))
	if end := bytes.IndexByte(figure, '\n'); end > 0 {
		if used, err := strconv.ParseInt(string(figure[:end]), 10, 64); err == nil {
			g.last = used * g.unit
		}
	}
	return g.last
}

// hierarchy is a mounted hierarchy of control groups that counts CPU time.
type hierarchy struct {
	root, mount string // root is the group that is seen at mount
	controller  string // "" of version 2
	file        string
	unit        int64
}

// hierarchies reads them from /proc/self/mountinfo (proc(5)).
func hierarchies() (all []hierarchy) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		place, source := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(source) < 3 {
			continue
		}
		h := hierarchy{root: place[3], mount: place[4]}
		switch {
		case source[0] == "cgroup2":
			h.file, h.unit = "cpu.stat", 1000
		case source[0] == "cgroup" && hasPart(source[2], "cpuacct"):
			h.controller, h.file, h.unit = "cpuacct", "cpuacct.usage", 1
		default:
			continue
		}
		all = append(all, h)
	}
	return all
}

// hasPart tells whether part is one of a list that commas divide; the empty list has the empty part.
func hasPart(list, part string) bool { return slices.Contains(strings.Split(list, ","), part) }

// folderOf is the folder of the group that all of these processes are in; "" if they are in several, or it cannot be seen.
func (h *hierarchy) folderOf(processes map[int]*process) (folder string) {
	for pid := range processes {
		of := h.folder(pid)
		if of == "" || folder != "" && of != folder {
			return ""
		}
		folder = of
	}
	return folder
}

// folder is that of the process's group below the mount; "" if the mount does not show it.
func (h *hierarchy) folder(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(string(text)) {
		// A number, the controllers and the group
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 || !hasPart(parts[1], h.controller) {
			continue
		}
		below, err := filepath.Rel(h.root, parts[2])
		if err != nil || strings.HasPrefix(below, "..") {
			return ""
		}
		return filepath.Join(h.mount, below)
	}
	return ""
}

// holdsOnly tells whether a group and those below it have no other processes.
func holdsOnly(folder string, processes map[int]*process) bool {
	others := false
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		members, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, member := range strings.Fields(string(members)) {
			if pid, _ := strconv.Atoi(member); processes[pid] == nil {
				others = true
				return fs.SkipAll
			}
		}
		return err
	})
	return err == nil && !others
}
