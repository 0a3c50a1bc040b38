package webhook_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
)

// The program on the guide's page for receivers accepts a call from the hub. It refuses the call if
// any part was changed.
func TestReceiversPage_ItsProgramVerifiesCalls(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("python3 is not on this machine, so the program is not run")
		return
	}
	page, err := os.ReadFile("../guide/receivers.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```python\n(.*?)\nhttp.server.Threading").FindSubmatch(page)
	require.NotNil(t, block)
	program := string(block[1]) + `
import email.message, json, sys
for call in json.load(sys.stdin):
    headers = email.message.Message()
    for name, value in call["headers"].items():
        headers[name] = value
    print(is_valid(headers, call["body"].encode()))
`
	require.Contains(t, program, oldSecret)
	d := delivery("http://receiver.example/hook")
	d.Secrets = []webhook.Secret{secret(t, newSecret), secret(t, oldSecret)}
	call := requestOf(t, d)
	type received struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	headers := make(map[string]string)
	for name := range call.header {
		headers[name] = call.header.Get(name)
	}
	// changed returns the call with the header name set to value, or without this header if value
	// is "".
	changed := func(name, value string) received {
		other := maps.Clone(headers)
		require.Contains(t, other, name)
		if delete(other, name); value != "" {
			other[name] = value
		}
		return received{other, string(call.body)}
	}
	old := strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)
	input, err := json.Marshal([]received{
		{headers, string(call.body)},
		{headers, string(call.body) + " "},
		changed("Webhook-Id", "msg_other"),
		changed("Webhook-Timestamp", old),
		changed("Webhook-Timestamp", "now"),
		changed("Webhook-Signature", ""),
		changed("Webhook-Signature", "v1,é"),
	})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "python3", "-c", program)
	cmd.Stdin = strings.NewReader(string(input))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "True\nFalse\nFalse\nFalse\nFalse\nFalse\nFalse\n", string(out))
}

func TestReceiversPage_ItsExampleHasTheDigestAndTheSignatureOfItsBody(t *testing.T) {
	page, err := os.ReadFile("../guide/receivers.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```text\n(POST / HTTP/1.1\n.*?)\n\n(.*?)\n```").FindSubmatch(page)
	require.NotNil(t, example)
	head, body := string(example[1]), example[2]
	call, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\n\n")))
	require.NoError(t, err)
	digest := sha256.Sum256(body)
	require.Equal(t, "SHA-256="+base64.StdEncoding.EncodeToString(digest[:]), call.Header.Get("Digest"))
	date, err := http.ParseTime(call.Header.Get("Date"))
	require.NoError(t, err)
	key, err := webhook.ParseVerifyKey(oldSecret)
	require.NoError(t, err)
	verifier := webhook.Verifier{Keys: []webhook.VerifyKey{key}}
	schemes, err := verifier.Verify(call.Header, body, date)
	require.NoError(t, err)
	require.Equal(t, []webhook.Scheme{webhook.SchemeShared}, schemes)
	require.Contains(t, string(body), `"transaction_id":"`+call.Header.Get("Webhook-Id")+`"`)
}
