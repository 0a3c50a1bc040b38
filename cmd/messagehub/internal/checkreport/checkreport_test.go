package checkreport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/hub"
)

func TestText_FitsManyFindingsOnAScreen(t *testing.T) {
	r := &hub.CheckReport{Recipients: 1234567, Found: 10_020}
	for i := range 10_000 {
		r.Findings = append(r.Findings, hub.Finding{
			Rule: "H1", Kind: fmt.Sprintf("kind-%d", i%20), Recipient: fmt.Sprint("actor-", i%7), Where: strings.Repeat("w", 50),
			Text: "a\x1b[2J" + strings.Repeat("t", 500), Damage: i%2 == 0,
		})
	}
	text := Text(r, false)
	require.LessOrEqual(t, strings.Count(text, "\n"), 24)
	require.Contains(t, text, "  1,234,567 recipients, ")
	require.Contains(t, text, "  and 8 kinds more\n")
	require.Contains(t, text, "Only the first 10000 findings were kept.\n")
	require.NotContains(t, text, "\x1b")
	require.Less(t, strings.Index(text, "DAMAGE"), strings.Index(text, "repairable"))
	require.Greater(t, strings.Count(Text(r, true), "\n"), 10_000)
}
