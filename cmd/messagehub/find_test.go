package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain/find"
)

const firstEvent = "00000000-0000-4000-8000-000000000001"

func TestFind_ShowsATimelineAndWhatAnEventWaitsFor(t *testing.T) {
	for _, kind := range []string{"memory", "disk"} {
		t.Run(kind, func(t *testing.T) {
			args := []string{"--in-memory"}
			if kind == "disk" {
				args = []string{"--data", t.TempDir()}
			}
			url := startHub(t, args...).url(t)
			find := func(args ...string) result {
				return messagehub(t, "", append([]string{"find", "--url", url}, args...)...)
			}
			require.Equal(t, exitNoData, find(firstEvent).status)
			messagehub(t, events(1, 3), "send", "--url", url, "-")
			got := find(firstEvent)
			require.Equal(t, 0, got.status, got.err)
			require.Contains(t, got.out, "Event 1 from Charges, D18: waiting, actor "+actorA+"\n")
			require.Contains(t, got.out, "\n  waits: not-peeked since ")
			for line := range strings.Lines(got.out) {
				require.LessOrEqual(t, utf8.RuneCountInString(line), findWidth+1, line)
			}
			messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--bundle-id", bundleID)
			messagehub(t, "", "queue", "skip", "--url", url, actorA, bundleID, "--who", "kim", "--why", "ticket 4711")
			got = find(firstEvent, "--actor", actorA, "--origin", "Charges", "--kind", "event")
			require.Contains(t, got.out, "kim skipped the bundle")
			require.NotContains(t, got.out, "waits:")
			require.Contains(t, find(bundleID).out, "Bundle of 3 events from Charges: skipped")
			require.Contains(t, find(bundleID+"_"+actorA).out, "Bundle of 3 events from Charges: skipped")

			var asJSON hubclient.Found
			require.NoError(t, json.Unmarshal([]byte(find(firstEvent, "--json").out), &asJSON))
			require.Equal(t, "skipped", asJSON.Results[0].State)
			got = find("00000000-0000-4000-8000-000000000009")
			require.Equal(t, exitNoData, got.status)
			require.Contains(t, got.out, "nothing found as bundle, event, in 1 mailbox\n")
			got = find("<script>\u202e")
			require.Equal(t, exitNoData, got.status)
			require.NotContains(t, got.out, "\u202e")
			got = find(strings.Repeat("x", 300))
			require.Equal(t, 1, got.status)
			require.Contains(t, got.err, "want at most 256 characters")
		})
	}
}

// The test's hub returns each event only in its third response, refuses one
// request, and reports a mailbox that it could not read. The command must
// continue, and print all results.
func TestFind_RequestsFurtherPages(t *testing.T) {
	requests := 0
	url := memoryHub(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			found, after := 0, r.URL.Query().Get("after")
			results := "[]"
			switch {
			case requests == 2:
				w.Header().Set("Retry-After", "1")
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprint(w, `{"type":"urn:messagehub:problem:busy","title":"Too busy","status":429,"detail":"x","instance":"urn:messagehub:request:x"}`)
				return
			case after == "2":
				found, results = 1, `[{"kind":"event","state":"waiting","actor":"a","title":"Event 1","steps":[],"waits":[]}]`
			}
			next := map[string]string{"": "1", "1": "2", "2": ""}[after]
			fmt.Fprintf(w, `{"id":"x","results":%s,"looked":{"kinds":["event"],"found":%d,"mailboxes":%d,"unread":1,"damage":[{"actor":"b%s","reason":"\u202ebad"}],"notes":["Same."]},"after":%q}`,
				results, found, 10*(len(after)+1), after, next)
		})
	})
	got := messagehub(t, "", "find", "--url", url, firstEvent)
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, 4, requests)
	require.Equal(t, "Event 1: waiting, actor a\nnot read: b: ?bad\nnot read: b1: ?bad\nnot read: b2: ?bad\nnote: Same.\n", got.out)
}

func TestFind_ReportsItsProgressWhenItFails(t *testing.T) {
	requests := 0
	url := memoryHub(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests++; requests == 1 {
				fmt.Fprint(w, `{"id":"x","results":[],"looked":{"kinds":["event"],"found":0,"mailboxes":812,"unread":0},"after":"1"}`)
				return
			}
			w.WriteHeader(http.StatusBadGateway)
		})
	})
	got := messagehub(t, "", "find", "--url", url, firstEvent)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "after 812 mailboxes; the others were not searched")
}

func TestExplain_CausesAreInTheHandbook(t *testing.T) {
	page := handbookPages(t)["deploy/handbook/incidents.md"]
	for _, cause := range find.Causes {
		require.Contains(t, page, fmt.Sprintf("\n| `%s` | ", cause))
	}
}

func TestFind_ShowsAnEventOfATopicAndItsDeliveries(t *testing.T) {
	url := pushHub(t)
	created := subscriptions(t, url, "create", "--id", subscriptionA, "--callback-url", "http://127.0.0.1:1/")
	require.Equal(t, 0, created.status, created.err)
	publishEvent(t, url, "event-1")
	got := messagehub(t, "", "find", "--url", url, "event-1", "--source", "/x", "--actor", actorA)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "Event of topic events: published\n")
	require.Contains(t, got.out, "Delivery to subscription "+subscriptionA+": ")
	got = messagehub(t, "", "find", "--url", url, subscriptionA+".0.0")
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "Delivery to subscription "+subscriptionA+": ")
	require.Equal(t, exitNoData, messagehub(t, "", "find", "--url", url, "event-1", "--source", "/y").status)
	require.Equal(t, exitUsage, messagehub(t, "", "find", "--url", url, "event-1", "--topic", "events").status)
}
