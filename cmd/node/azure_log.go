package node

import (
	"context"
	"log/slog"
	"strings"

	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// LogAzure lets the clients of Azure log to logger, if it logs at debug level
// now. The setting is one of the whole process and must be made before any
// client exists, because the clients read it without a lock. So raising the
// level later does not turn their log on; while it is off, they compose no
// lines.
func LogAzure(ctx context.Context, logger *slog.Logger) {
	if logger.Enabled(ctx, slog.LevelDebug) {
		azlog.SetListener(azureListener(logger))
	}
}

// maxAzureText is the limit of the text of a line, in bytes. A request has a line for each of its headers.
const maxAzureText = 4 << 10

// azureListener returns a function that logs events of the clients. The clients
// leave out the values of headers and queries that they do not know;
// azureListener removes other secrets.
func azureListener(logger *slog.Logger) func(azlog.Event, string) {
	return func(event azlog.Event, text string) {
		logger.Debug("azure", "event", string(event), "text", redactAzure(text))
	}
}

// redactAzure returns a text of the clients without secrets. A text about a
// signature or the header Authorization is replaced as a whole: azcosmos and
// azblob quote what they have signed when it is refused.
func redactAzure(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch lower := strings.ToLower(line); {
		case strings.Contains(lower, "http forbidden status"), strings.Contains(lower, "string-to-sign"):
			return "(a request was refused; the text quotes its signature and is left out)"
		case strings.Contains(lower, "authorization"), strings.Contains(lower, "bearer "), strings.Contains(lower, "sharedaccesssignature"):
			name, _, _ := strings.Cut(line, ":")
			if !strings.HasSuffix(line, ": REDACTED") {
				lines[i] = domain.Clip(name) + ": REDACTED"
			}
		}
	}
	text, _ = config.Redact(strings.Join(lines, "\n"))
	if len(text) > maxAzureText {
		text = strings.ToValidUTF8(text[:maxAzureText], "") + "…"
	}
	return text
}
