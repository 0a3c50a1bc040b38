package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// A letterHub is a hub in this process, whose queue without sessions contains
// dead letters.
type letterHub struct {
	*testing.T
	url   string
	queue string
}

// newLetterHub starts a hub, and sends a message with each of these bodies. The
// hub cannot store them.
func newLetterHub(t *testing.T, bodies ...string) *letterHub {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.AdminListen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "", true
	cfg.Admin.Token = operatorToken
	n := runNode(t, cfg)
	h := &letterHub{t, n.AdminURL(), cfg.ServiceBus.Plain}
	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+n.BusAddr().String()+";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true", nil)
	require.NoError(t, err)
	sender, err := client.NewSender(h.queue, nil)
	require.NoError(t, err)
	for i, body := range bodies {
		kind, id := contract.JSON, fmt.Sprintf("m%d", i+1)
		require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body), ContentType: &kind, MessageID: &id}, nil))
	}
	require.NoError(t, client.Close(t.Context()))
	h.wants(len(bodies))
	return h
}

// wants waits until there are n dead letters, and returns the dead letters.
func (h *letterHub) wants(n int) []hubclient.DeadLetter {
	h.Helper()
	var page struct{ DeadLetters []hubclient.DeadLetter }
	require.Eventually(h, func() bool {
		got := h.run("", "list", h.queue, "--limit", "1000", "--json")
		require.Zero(h, got.status, got.err)
		require.NoError(h, json.Unmarshal([]byte(got.out), &page))
		return len(page.DeadLetters) == n
	}, time.Minute, 5*time.Millisecond)
	return page.DeadLetters
}

func (h *letterHub) run(stdin, name string, args ...string) result {
	h.Helper()
	return messagehub(h.T, stdin, append([]string{"dead-letters", name, "--url", h.url}, args...)...)
}

var because = []string{"--who", "kim", "--why", "ticket 4711"}

func TestDeadLetters_AreListedAndShown(t *testing.T) {
	h := newLetterHub(t, "{\x1b[2J", "[\n", "\xff")
	queues := h.run("", "list")
	require.Zero(t, queues.status, queues.err)
	require.Regexp(t, `(?m)^QUEUE +DEAD LETTERS +SENT AGAIN +USE$`, queues.out)
	require.Regexp(t, `(?m)^dataavailable +3 +yes +events of senders that set no session$`, queues.out)
	require.Regexp(t, `(?m)^timeseries-reply +0 +no +answers to requests, from TimeSeries$`, queues.out)

	list := h.run("", "list", h.queue)
	require.Zero(t, list.status, list.err)
	require.Regexp(t, `(?m)^NUMBER +ENQUEUED +REASON +SESSION +BYTES +MESSAGE ID$`, list.out)
	require.Regexp(t, `(?m)^1 +`+timePattern+` +not-json +- +5 +m1$`, list.out)
	for line := range strings.Lines(list.out) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
	}
	require.Equal(t, result{0, h.queue + " has no such dead letters\n", ""}, h.run("", "list", h.queue, "--reason", "damaged"))
	first := h.run("", "list", h.queue, "--limit", "1")
	require.NotContains(t, first.out, "m2")
	require.Equal(t, "messagehub: the list may be longer; --limit shows more of it, --reason one reason only\n", first.err)

	shown := h.run("", "show", append([]string{h.queue, "1"}, because...)...)
	require.Zero(t, shown.status, shown.err)
	require.Regexp(t, `(?m)^message id +m1$`, shown.out)
	require.Contains(t, shown.out, "\nbody, 5 bytes:\n{?[2J\n", "it steers no terminal")
	require.Contains(t, h.run("", "show", append([]string{h.queue, "2"}, because...)...).out, "\nbody, 2 bytes:\n[\n\n")
	require.Contains(t, h.run("", "show", append([]string{h.queue, "3"}, because...)...).out, "\nbody, in base64, 1 byte:\n/w==\n")
	require.Contains(t, h.run("", "show", append([]string{h.queue, "3", "--json"}, because...)...).out, `"base64":"/w=="}`)
	require.Equal(t, result{0, "no order of an operator is recorded for the dead letters of this queue\n", ""}, h.run("", "records", "dataavailable-fifo"))
	require.Contains(t, h.run("", "records", h.queue).out, "  look dead letter 3 (not-json): done\n    by kim: ticket 4711\n")
}

func TestDeadLetters_AreSentAgainAndDeleted(t *testing.T) {
	h := newLetterHub(t, "{", "[")
	require.Equal(t, result{0, "sent again dead letter 1 of dataavailable\n", ""}, h.run("", "resend", append([]string{h.queue, "1"}, because...)...))
	require.Equal(t, "kim", h.wants(2)[1].ResentBy)
	require.Equal(t, result{0, "deleted dead letter 2 of dataavailable\n", ""}, h.run("", "delete", append([]string{h.queue, "2"}, because...)...))
	require.Equal(t, result{0, `{"count":1}` + "\n", ""}, h.run("", "delete", append([]string{h.queue, "3", "--json"}, because...)...))
	got := h.run("", "delete", append([]string{h.queue, "3"}, because...)...)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "messagehub: Not found (404): queue dataavailable has no dead letter with the sequence number 3")
	records := h.run("", "records", h.queue, "--json")
	require.Contains(t, records.out, `{"records":[{"when":`)
}

func TestDeadLetters_OfOneReasonAreOrderedTogether(t *testing.T) {
	bodies := make([]string, 230)
	for i := range bodies {
		bodies[i] = "{"
	}
	h := newLetterHub(t, append(bodies, "[{}]")...)
	all := append([]string{h.queue, "--all", "--reason", "not-json"}, because...)
	for _, answer := range []string{"", "no\n", "y\n"} {
		got := h.run(answer, "delete", all...)
		require.Equal(t, 1, got.status)
		require.Empty(t, got.out)
		require.Contains(t, got.err, "230 dead letters of dataavailable with the reason not-json will be deleted. Type yes to continue: ")
		require.Contains(t, got.err, "messagehub: nothing was done to 230 dead letters of dataavailable with the reason not-json; answer yes, or use --yes\n")
	}
	got := h.run("yes\n", "resend", all...)
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, "sent again 230 dead letters of dataavailable\n", got.out)
	require.Equal(t, "kim", h.wants(231)[230].ResentBy, "they come back, and are not sent a second time")
	require.Equal(t, result{0, `{"count":230}` + "\n", ""}, h.run("", "delete", append(all, "--yes", "--json")...))
	require.Equal(t, result{0, "dataavailable has no dead letters with the reason not-json\n", ""}, h.run("", "delete", all...))
	require.Len(t, h.wants(1), 1)
}

func TestDeadLetters_SayWhatIsWrongWithACommand(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"list", "a", "b"}, "want one QUEUE, or none for the list of queues"},
		{[]string{"list", "--reason", "a"}, "--reason: want a QUEUE, too"},
		{[]string{"list", "--limit", "0"}, "--limit: want at least 1, got 0"},
		{[]string{"list", "--url", "x"}, `--url: want the address of a hub such as http://127.0.0.1:8080, got "x"`},
		{[]string{"show", "a"}, "want QUEUE and NUMBER, the sequence number that list prints"},
		{[]string{"show", "a", "b", "--why", "x"}, `want the sequence number that list prints, got "b"`},
		{[]string{"show", "a", "1"}, "--why is missing; say why, for the record"},
		{[]string{"resend", "a", "--why", "x"}, "want QUEUE and NUMBER, the sequence number that list prints"},
		{[]string{"resend", "a", "1", "--reason", "damaged", "--why", "x"}, "--reason: it needs --all; give both, or a NUMBER alone"},
		{[]string{"delete", "a", "1", "--yes", "--why", "x"}, "--yes: it confirms --all; a NUMBER needs no confirmation"},
		{[]string{"delete", "a", "1", "--all", "--why", "x"}, "want QUEUE alone with --all"},
		{[]string{"delete", "a", "--all", "--why", "x"}, "--reason is missing; say which dead letters, by the reason that list prints"},
		{[]string{"records"}, "want one QUEUE"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			got := messagehub(t, "", append([]string{"dead-letters"}, tc.args...)...)
			require.Equal(t, result{2, "", "messagehub: " + tc.want + "\nmessagehub: see messagehub dead-letters " + tc.args[0] + " --help\n"}, got)
		})
	}
}

func TestDeadLetters_NeedTheTokenOfOperators(t *testing.T) {
	h := newLetterHub(t)
	got := withToken(t, "wrong", "dead-letters", "list", "--url", h.url)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "The operator's token is missing or wrong (401)")
	got = messagehub(t, "", "dead-letters", "list", "nowhere", "--url", h.url)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, `this hub has no queue "nowhere"; its queues are `)
}
