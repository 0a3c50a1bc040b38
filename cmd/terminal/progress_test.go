package terminal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/terminal"
)

func TestProgress_PrintsALineForEach10000Events(t *testing.T) {
	var b strings.Builder
	p := terminal.NewEventProgress(&b, "drained", 25_000)
	for range 25 {
		p.Add(1000, 0)
	}
	p.Printf("one %s", "more")
	p.Clear()
	require.Equal(t, "drained 10000 events\ndrained 20000 events\none more\n", b.String())
}

func TestProgress_DrawsABarForAPerson(t *testing.T) {
	var b strings.Builder
	p := terminal.NewEventProgress(&b, "sent", 3)
	p.Watched = true
	p.Add(1, 100)
	p.Add(2, 100)
	p.Printf("a line")
	p.Clear()
	require.Equal(t, terminal.ClearLine+"sent  33 % ██████████░░░░░░░░░░░░░░░░░░░░ 1 of 3"+
		terminal.ClearLine+"sent 100 % ██████████████████████████████ 3 of 3"+
		terminal.ClearLine+"a line\n", b.String())
}

func TestProgress_CountsTheBytesOfAnInput(t *testing.T) {
	for size, want := range map[int64]string{
		4 << 20: "sending  25 % ███████░░░░░░░░░░░░░░░░░░░░░░░ 1.0 of 4.0 MB",
		1 << 19: "sending 100 % ██████████████████████████████ 1.0 of 0.5 MB", // more than 100 %, because the file has grown
		-1:      "sending 1.0 MB",
	} {
		var b strings.Builder
		p := terminal.NewByteProgress(&b, size)
		p.Watched = true
		p.Add(7, 1<<20)
		require.Equal(t, terminal.ClearLine+want, b.String())
	}
}
