package link

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Why a setting does not hold.
const (
	problemUnknown  = "this kernel does not have it"
	problemGlobal   = "of the whole machine, not of a namespace"
	problemReadOnly = "cannot be changed in a namespace"
)

// applySetting writes a setting in the calling thread's namespace. It returns why that does not hold, or nothing. Only what is below
// net. can belong to a network namespace: nothing else is written.
func applySetting(name, value string) string {
	file := settingFile(name)
	if !strings.HasPrefix(name, "net.") || !isFile(file) {
		return problemUnknown
	}
	switch err := os.WriteFile(file, []byte(value), 0); {
	case errors.Is(err, fs.ErrPermission):
		return problemReadOnly
	case err != nil:
		return "refused: " + reason(err).Error()
	}
	// Some can be written but not read, such as keys.
	if held, err := os.ReadFile(file); err == nil && !sameValue(value, string(held)) {
		return "the kernel made it " + strings.Join(strings.Fields(string(held)), " ")
	}
	return ""
}

// nameGlobals tells settings that no namespace has from those that the machine does not have either. It is for a thread in the
// machine's namespace.
func nameGlobals(outcomes []SettingOutcome) {
	for i := range outcomes {
		if o := &outcomes[i]; o.Problem == problemUnknown && isFile(settingFile(o.Name)) {
			o.Problem = problemGlobal
		}
	}
}

func settingFile(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// sameValue compares field by field, as the kernel writes numbers its own way.
func sameValue(asked, held string) bool {
	return slices.EqualFunc(strings.Fields(asked), strings.Fields(held), func(a, h string) bool {
		n, err := strconv.ParseInt(a, 0, 64)
		return a == h || err == nil && strconv.FormatInt(n, 10) == h
	})
}

// reason is what the kernel said, without the file's name.
func reason(err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return err
}
