package console_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain/hub"
)

// checkThatWaits returns a check that reports progress. It then waits until found is closed or the
// context of the check ends.
func checkThatWaits(found <-chan struct{}) hub.Checker {
	return func(ctx context.Context, opts hub.CheckOptions) (report hub.CheckReport, err error) {
		report.Recipients = 7
		opts.Progress(report)
		select {
		case <-found:
		case <-ctx.Done():
			return report, ctx.Err()
		}
		report.Found = 1
		report.Findings = []hub.Finding{{Rule: "H3", Kind: "missing", Recipient: actor, Where: "drawer/1", Text: "a drawer is missing", Damage: true}}
		return report, nil
	}
}

func TestCheck_EndsWithTheConsole(t *testing.T) {
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) { o.Check = checkThatWaits(nil) })
	b.post("/console/check", b.get("/console/check").form("/console/check")).wants(http.StatusSeeOther)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.console.Run(ctx) // Run waits for the end of the check
	require.Contains(t, b.get("/console/check").text(), "The node was asked to stop.")
}

func TestCheck_SaysThatItFailed(t *testing.T) {
	for _, fail := range []func() error{func() error { return errors.New("no disk <b>") }, func() error { panic("no disk <b>") }} {
		b := openSignedIn(t, func(o *console.Options, _ *api.Options) {
			o.Check = func(context.Context, hub.CheckOptions) (hub.CheckReport, error) { return hub.CheckReport{}, fail() }
		})
		b.post("/console/check", b.get("/console/check").form("/console/check")).wants(http.StatusSeeOther)
		require.Eventually(t, func() bool { return strings.Contains(b.get("/console/check").text(), "o disk <b>") }, 10*time.Second, time.Millisecond)
	}
}
