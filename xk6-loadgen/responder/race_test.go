//go:build race

package responder

const raceEnabled = true
