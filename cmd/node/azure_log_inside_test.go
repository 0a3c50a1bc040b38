package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/stretchr/testify/require"
)

func TestAzureLog_ShowsNoSecret(t *testing.T) {
	var out bytes.Buffer
	write := azureListener(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	const signature = "c2lnbmF0dXJlLW9mLWEta2V5LXRoYXQtaXMtc2VjcmV0"
	for _, text := range []string{
		"===== HTTP Forbidden status, Authorization:\ntype%3Dmaster%26ver%3D1.0%26sig%3D" + signature + "\n=====\n",
		"===== HTTP Forbidden status, String-to-Sign:\nGET\n" + signature + "\n=====\n",
		"   GET https://a.example/c\n   Authorization: Bearer " + signature + "\n   Accept: */*",
		"   GET https://a.example/c\n   authorization: SharedKey account:" + signature,
		"GET https://a.example/c?sv=2024&sig=" + signature,
		"Endpoint=sb://a.example/;SharedAccessKeyName=n;SharedAccessKey=" + signature,
		"AccountKey=" + signature,
		"token SharedAccessSignature sr=a&sig=" + signature + "&se=1",
		"error: eyJhbGciOiJSUzI1NiJ9." + signature + ".x",
	} {
		out.Reset()
		write(azlog.EventResponse, text)
		require.Contains(t, out.String(), "msg=azure event=Response", text)
		require.NotContains(t, out.String(), signature, text)
		require.NotContains(t, out.String(), signature[:12], text)
	}
}

func TestAzureLog_KeepsTextWithoutSecrets(t *testing.T) {
	const text = "==> OUTGOING REQUEST (Try=1)\n   GET https://a.example/dbs/messagehub\n   Accept: application/json\n   Authorization: REDACTED"
	require.Equal(t, text, redactAzure(text))
	long := redactAzure(strings.Repeat("ø ", maxAzureText))
	require.LessOrEqual(t, len(long), maxAzureText+len("…"))
	require.True(t, strings.HasSuffix(long, "…"))
}
