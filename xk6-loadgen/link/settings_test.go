package link

import (
	"os"
	"strings"
	"testing"
)

func TestSameValue(t *testing.T) {
	for _, c := range []struct {
		asked, held string
		same        bool
	}{
		{"128", "128\n", true},
		{"4096 349520 16777216", "4096\t349520\t16777216\n", true},
		{" 1 ", "1\n", true},
		{"0x10", "16\n", true},
		{"010", "8\n", true},
		{"-1", "-1\n", true},
		{"reno", "reno\n", true},
		{"128", "127\n", false},
		{"1 2", "1\t2\t3\n", false},
		{"1 2 3", "1\t2\n", false},
		{"reno", "cubic\n", false},
	} {
		if same := sameValue(c.asked, c.held); same != c.same {
			t.Errorf("%q and %q: %t", c.asked, c.held, same)
		}
	}
}

// Nothing but a setting below net. is looked for, let alone written. What is asked for is what they are: where this fails, the
// machine is not changed by it.
func TestNamesThatAreNotOfTheNetwork(t *testing.T) {
	for _, name := range []string{"kernel.hostname", "fs.file-max", "vm.swappiness", "net", "net.", "network.x", "net.ipv4", "net.core.no_such_setting"} {
		value, _ := os.ReadFile(settingFile(name))
		if problem := applySetting(name, strings.TrimSpace(string(value))); problem != problemUnknown {
			t.Errorf("%s: %q", name, problem)
		}
	}
}

func TestASlashStandsForADot(t *testing.T) {
	if file := settingFile("net.ipv4.conf.eth0/1.rp_filter"); file != "/proc/sys/net/ipv4/conf/eth0.1/rp_filter" {
		t.Errorf("it is in %s", file)
	}
}
