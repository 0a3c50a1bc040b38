package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestQueueList_ShowsTheQueuesOfAllActors(t *testing.T) {
	url := startHub(t, "--in-memory").url(t)
	list := func(args ...string) result {
		return messagehub(t, "", append([]string{"queue", "list", "--url", url}, args...)...)
	}
	messagehub(t, events(1, 3), "send", "--url", url, "-")
	messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--bundle-id", bundleID)
	var open result
	require.Eventually(t, func() bool {
		open = list("--state", "open")
		return strings.Contains(open.out, actorA) && strings.Contains(open.out, "surveyed at")
	}, 30*time.Second, 50*time.Millisecond, "no round of the survey has seen the bundle")
	require.Equal(t, 0, open.status)
	require.Regexp(t, `(?m)^`+actorA+` +open +3 +\d+s +`+timePattern+` +20`, open.out)
	require.Regexp(t, `(?m)^1 of 1, surveyed at 20`, open.out)
	for line := range strings.Lines(open.out) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 121, line)
	}
	require.Equal(t, result{0, "no queue matches; the survey finds a new queue within seconds\n", ""}, list("--state", "damaged"))

	var asJSON listOfQueues
	require.NoError(t, json.Unmarshal([]byte(list("--json", "--sort", "events").out), &asJSON))
	require.Equal(t, 1, asJSON.Matching)
	require.Len(t, asJSON.Queues, 1)
	require.NotNil(t, asJSON.SurveyedAt)
}

func TestQueueList_RefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{{"--state", "asleep"}, {"--sort", "name"}, {"--limit", "0"}, {"--url", "::"}, {actorA}} {
		refused := messagehub(t, "", append([]string{"queue", "list"}, args...)...)
		require.Equal(t, 2, refused.status, "%v: %s", args, refused.err)
	}
}
