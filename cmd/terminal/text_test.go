package terminal_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cmd/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClip_CountsRunes(t *testing.T) {
	require.Equal(t, "Øst", terminal.Clip("Øst", 3))
	require.Equal(t, "Ø…", terminal.Clip("Øst", 2))
}

func TestPrintable_ReplacesControlCharacters(t *testing.T) {
	require.Equal(t, "?[2J Øst?", terminal.Printable("\x1b[2J Øst\u009b"))
}

func TestPrintable_ReplacesDirectionalMarks(t *testing.T) {
	require.Equal(t, "evil?gpj.exe?", terminal.Printable("evil\u202egpj.exe\u200f"))
}

func TestShellWord_QuotesOnlyWhatNeedsIt(t *testing.T) {
	require.Equal(t, "/usr/bin/messagehub", terminal.ShellWord("/usr/bin/messagehub"))
	require.Equal(t, `'it'\''s here'`, terminal.ShellWord("it's here"))
	require.Equal(t, "''", terminal.ShellWord(""))
}

func TestStatusLine_ReplacesAndRemovesItsText(t *testing.T) {
	var b strings.Builder
	l := terminal.NewStatusLine(&b)
	require.False(t, l.Watched, "a buffer is no terminal")
	require.Equal(t, 80, l.Columns())
	l.Clear()
	require.Empty(t, b.String(), "there is no line to remove")
	l.Draw("one")
	l.Draw("two")
	l.Clear()
	l.Clear()
	require.Equal(t, terminal.ClearLine+"one"+terminal.ClearLine+"two"+terminal.ClearLine, b.String())
}

func TestIsTerminal_IsFalseForAFile(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer f.Close()
	require.False(t, terminal.IsTerminal(f))
}
