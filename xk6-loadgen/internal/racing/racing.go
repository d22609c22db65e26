// Package racing is for tests that count allocations: the race detector makes some of its own.
package racing

import (
	"runtime/debug"
	"slices"
)

// IsDetected tells whether this program was built with the race detector (-race).
func IsDetected() bool {
	build, _ := debug.ReadBuildInfo()
	return build != nil && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
