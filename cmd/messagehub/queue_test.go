package main

import (
	"encoding/json"
	"net/http"
	"os/user"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
)

// timePattern matches a time as commands print it.
const timePattern = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`

// withToken runs an operator's command with a token in its environment.
func withToken(t *testing.T, token string, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	status := run(t.Context(), &process{
		args: append([]string{"messagehub"}, args...), environ: []string{tokenVariable + "=" + token},
		in: strings.NewReader(""), out: &out, err: &errs,
	})
	return result{status, out.String(), errs.String()}
}

func TestQueue_ExecutesTheOrdersOfAnOperator(t *testing.T) {
	for _, kind := range []string{"memory", "disk"} {
		t.Run(kind, func(t *testing.T) {
			args := []string{"--in-memory"}
			if kind == "disk" {
				args = []string{"--data", t.TempDir()}
			}
			url := startHub(t, args...).url(t)
			peek := func() result { return messagehub(t, "", "peek", "--url", url, "--actor", actorA) }
			queue := func(what string, more ...string) result {
				return messagehub(t, "", append([]string{"queue", what, "--url", url, actorA}, more...)...)
			}
			order := func(what string, more ...string) result {
				return queue(what, append(more, "--who", "kim", "--why", "ticket 4711")...)
			}
			require.Equal(t, result{exitNoData, "nothing was ever stored for actor " + actorA + "; compare the id with those of messagehub queue list\n", ""}, queue("show"))
			require.Equal(t, result{0, "no order of an operator is recorded for this queue\n", ""}, queue("records"))
			messagehub(t, events(1, 3), "send", "--url", url, "-")
			messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--bundle-id", bundleID)

			require.Equal(t, result{0, "released " + bundleID + "\n", ""}, order("release", bundleID))
			second := bundleOf(t, peek())
			require.NotEqual(t, bundleID, second)
			require.Equal(t, result{0, "skipped " + second + "\n", ""}, order("skip", second))
			require.Equal(t, exitNoData, peek().status)
			require.Equal(t, result{0, "opened " + second + " again, with 3 events\n", ""}, order("replay", "masterdata"))
			require.Equal(t, second, bundleOf(t, peek()))
			require.Equal(t, result{0, "frozen " + actorA + "\n", ""}, order("freeze"))
			frozen := peek()
			require.Equal(t, 1, frozen.status)
			require.Contains(t, frozen.err, "The queue is frozen (503)")
			require.NotContains(t, frozen.err, "kim", "an actor does not learn who its operators are")
			require.NotContains(t, frozen.err, "4711")

			shown := queue("show")
			require.Equal(t, 0, shown.status, shown.err)
			for line := range strings.Lines(shown.out) {
				require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
			}
			require.Regexp(t, `^`+actorA+`\nsequence 3 visible, 3 reserved, frozen\nfrozen at `+timePattern+` by kim: ticket 4711\n\n`, shown.out)
			require.Regexp(t, `(?m)^masterdata +3 +\d+ +`+second+` +3 +`+timePattern+`$`, shown.out)
			require.Regexp(t, `(?m)^Charges +ChargePriceList +3 +3 +0 +3 +1$`, shown.out)
			require.Regexp(t, `(?m)^[-0-9a-f]{36} +Charges +1 +1 +3 +0 +3 +-$`, shown.out)
			var asJSON storedQueue
			require.NoError(t, json.Unmarshal([]byte(queue("show", "--json").out), &asJSON))
			require.True(t, asJSON.Frozen)
			require.Equal(t, second, asJSON.Groups[1].Open.BundleID)

			require.Equal(t, result{0, "thawed " + actorA + "\n", ""}, order("thaw"))
			require.Equal(t, 0, messagehub(t, "", "dequeue", "--url", url, "--actor", actorA, second).status)
			got := queue("thaw", "--why", "once more")
			require.Equal(t, 0, got.status, got.err)
			records := queue("records")
			require.Equal(t, 0, records.status, records.err)
			me, err := user.Current()
			require.NoError(t, err)
			require.Contains(t, records.out, "  thaw\n    by "+me.Username+": once more\n", "who is the login name unless it is said")
			require.Contains(t, records.out, "  skip "+second+" of masterdata (3 events)\n    by kim: ticket 4711\n")
			require.Equal(t, 12, strings.Count(records.out, "\n"))
			require.Equal(t, 6, strings.Count(queue("records", "--json").out, `"what"`))

			require.Equal(t, result{1, "", "messagehub: Not found (404): "}, clipStderr(order("release", bundleID), len("messagehub: Not found (404): ")))
			checked := messagehub(t, "", "check", "--url", url)
			require.Equal(t, 0, checked.status, checked.out+checked.err)
		})
	}
}

// bundleOf returns the bundle id that a peek has printed.
func bundleOf(t *testing.T, peeked result) string {
	t.Helper()
	require.Equal(t, 0, peeked.status, peeked.err)
	id, _, _ := strings.Cut(strings.TrimPrefix(peeked.err, "MessageId: "), "\n")
	return id
}

// clipStderr returns r with only the first n bytes of its standard error.
func clipStderr(r result, n int) result {
	r.err = r.err[:min(n, len(r.err))]
	return r
}

func TestQueueTable_FitsLongNames(t *testing.T) {
	var out strings.Builder
	long := strings.Repeat("x", 128)
	var q storedQueue
	require.NoError(t, json.Unmarshal([]byte(`{"recipient":"`+long[:64]+`","watermark":123456789,"reserved":123456789,"groups":[{"group":"`+long[:64]+
		`","waiting":12345678,"generation":123456,"open":{"bundleId":"`+bundleID+`","events":10000,"opened":"2026-02-03T04:05:06Z"}}],`+
		`"cabinets":[{"origin":"`+long[:64]+`","contentType":"`+long+`","received":12345678,"last":123456789,"drawers":[`+
		strings.TrimSuffix(strings.Repeat(`{"id":"`+bundleID+`","ordinal":1234,"first":123456789,"events":10000,"position":1,"weight":512000,"sealed":true},`, 11), ",")+
		`]}]}`), &q))
	require.NoError(t, (&process{out: &out}).showQueue(&q))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
	}
	require.Contains(t, out.String(), "and 3 more drawers; --json shows all\n")
}

func TestDeadLetters_PrintNoControlCharactersOfRecords(t *testing.T) {
	var out strings.Builder
	var r storedRecords
	require.NoError(t, json.Unmarshal([]byte(`{"records":[{"who":"a\u001b[2J","why":"b\nc\u009b","what":"thaw"}]}`), &r))
	require.NoError(t, (&process{out: &out}).showRecords(&r))
	require.Equal(t, "0001-01-01T00:00:00Z  thaw\n    by a?[2J: b?c?\n", out.String())
}

func TestOperatorCommands_ReadTheTokenFromTheEnvironment(t *testing.T) {
	const token = operatorToken
	var shown []string
	url := memoryHub(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			shown = append(shown, r.Header.Get("Authorization"))
			next.ServeHTTP(w, r)
		})
	})
	require.Equal(t, exitNoData, withToken(t, token, "queue", "show", "--url", url, actorA).status)
	withToken(t, token, "peek", "--url", url, "--actor", actorA)
	require.Equal(t, []string{"Bearer " + token, ""}, shown, "and is for operators only")
	require.NotContains(t, messagehub(t, "", "queue", "show", "--help").out, "--token ")
}

func TestServe_InsecureRequiresTheConfiguredToken(t *testing.T) {
	const token = "a-token-for-operators"
	h := spawnHubWith(t, []string{"MESSAGEHUB_ADMIN_TOKEN=" + token}, "--in-memory", "--insecure")
	require.NoError(t, h.waitReady())
	url := h.url(t)
	require.Equal(t, exitNoData, withToken(t, token, "queue", "show", "--url", url, actorA).status)
	require.Equal(t, 0, withToken(t, token, "check", "--url", url).status)
	require.Contains(t, withToken(t, "another-token-than-that", "check", "--url", url).err, "The operator's token is missing or wrong (401)")
	require.NotContains(t, h.stderrText(), token)
	require.Contains(t, h.stderrText(), `"admin_token":"[redacted]"`)
	require.NotContains(t, h.stderrText(), `"retention"`, "it has its default")
}

func TestAbandon_PrintsTheLostEvents(t *testing.T) {
	data := t.TempDir()
	h := startHub(t, "--data", data)
	messagehub(t, events(1, 30), "send", "--url", h.url(t), "-")
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	eachFound(t, data, "cabinet", "SELECT * FROM c WHERE IS_DEFINED(c.until)", func(c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string) {
		_, err := c.DeleteItem(t.Context(), key, id, nil)
		require.NoError(t, err)
	})
	url := startHub(t, "--data", data).url(t)
	peek := func() result { return messagehub(t, "", "peek", "--url", url, "--actor", actorA) }
	queue := func(args ...string) result {
		return messagehub(t, "", append([]string{"queue", args[0], "--data", data, "--url", url, actorA}, args[1:]...)...)
	}
	require.Equal(t, 1, peek().status)
	checked := messagehub(t, "", "check", "--data", data, "--url", url)
	require.Contains(t, checked.out, "page-missing")
	require.Contains(t, checked.out, "queue abandon")
	lost := `30 events of Charges ChargePriceList, with sequences from 1 to 30\n    slots 0 to 29 of drawer 1 \([-0-9a-f]{36}\)\n`
	got := queue("abandon", "Charges", "ChargePriceList", "--who", "kim", "--why", "ticket 4711")
	require.Equal(t, 0, got.status, got.err)
	require.Regexp(t, "^abandoned "+lost+"$", got.out)
	require.Equal(t, exitNoData, peek().status)
	require.Regexp(t, "  abandon "+lost+"    by kim: ticket 4711\n$", queue("records").out)
	messagehub(t, events(1, 30), "send", "--url", url, "-")
	require.Equal(t, 0, peek().status, "what is lost may be sent again")
	require.Equal(t, 1, queue("abandon", "Charges", "ChargePriceList", "--who", "kim", "--why", "once more").status)
}
