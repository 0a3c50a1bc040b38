package bench

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/market"
	"github.com/messagehub/messagehub/bench/tokens"
)

// measureTokens runs a part of the scenario tokens and returns its figures by metric.
func measureTokens(t *testing.T, part func(b *tokenBench) error) map[string]float64 {
	t.Helper()
	issuer, err := tokens.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, issuer.Stop()) })
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error {
		return part(&tokenBench{scenarioRun: r, issuer: issuer, client: client})
	})
}

func TestTokens_AreComparedInMarkets(t *testing.T) {
	found := measureTokens(t, func(b *tokenBench) error {
		return b.compareMarkets(t.Context(), smallMarket(market.Group{Size: 10, Events: 200, Batch: 5, Period: 200 * time.Millisecond}), 1)
	})
	require.Zero(t, found["hub many actors, failed operations"])
	require.Zero(t, found["hub many actors, events lost"])
	require.Positive(t, found["hub many actors, events per second, with tokens, ratio to without"])
	require.Positive(t, found["hub many actors, dequeue p99, with tokens"])
}

func TestTokens_AreComparedInPeeks(t *testing.T) {
	found := measureTokens(t, func(b *tokenBench) error {
		return b.comparePeeks(t.Context(), testSite{openFastAccount(t), t.TempDir()}, 100, 2)
	})
	require.Positive(t, found["hub worst peek, with tokens, ratio to without"])
	require.Positive(t, found["hub worst dequeue, with tokens, ratio to without"])
}

func TestForgedTokens_CauseFewKeyFetchesAndNoReads(t *testing.T) {
	found := measureTokens(t, func(b *tokenBench) error {
		return b.measureForged(t.Context(), testSite{openFastAccount(t), t.TempDir()}, forgedLoad{rounds: 1, steady: time.Second, flood: 300 * time.Millisecond, tokens: 200})
	})
	require.Positive(t, found["hub forged at 400/s, total"])
	require.Zero(t, found["hub forged at 400/s, not refused with 401"])
	require.LessOrEqual(t, found["hub forged at 400/s, fetches of keys"], 2.0)
	require.Zero(t, found["hub 200 forged alone, not refused with 401"])
	require.LessOrEqual(t, found["hub 200 forged alone, fetches of keys"], 2.0)
	require.Zero(t, found["hub 200 forged alone, request units"])
	require.Zero(t, found["hub forged at 400/s, failed honest peeks"])
	require.Positive(t, found["hub flood from one address, refused"])
}

func TestTokens_OfKnownKeysAreValidDuringAnOutageOfTheIssuer(t *testing.T) {
	found := measureTokens(t, func(b *tokenBench) error { return b.measureIssuerAway(t.Context()) })
	require.Equal(t, 3600.0, found["hub issuer unreachable for an hour, requests of a known key"])
	require.Zero(t, found["hub issuer unreachable for an hour, failed requests of a known key"])
	require.Greater(t, found["hub issuer unreachable for an hour, requests of unknown keys answered as unavailable"], 350.0)
}

func TestRememberedTokens_AreMeasured(t *testing.T) {
	found := measureTokens(t, func(b *tokenBench) error { return b.measureRememberedToken(t.Context()) })
	require.Positive(t, found["hub refusal of an unknown query, without tokens"])
}

func TestTokens_OperatorsAreAnsweredWhileThePublicListenerIsFull(t *testing.T) {
	found := measureTokens(t, func(b *tokenBench) error { return b.measureFullListener(t.Context()) })
	require.Positive(t, found["hub public listener full, slowest /healthz of operators"])
	require.Positive(t, found["hub public listener full, requests to it that were refused"])
}
