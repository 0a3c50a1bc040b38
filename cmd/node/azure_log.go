package node

import (
	"context"
	"log/slog"
	"strings"

	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// LogAzure sends the log of the Azure clients to logger, if logger is at debug
// level. The setting applies to the whole process. LogAzure must be called
// before any client exists, because the clients read the setting without a
// lock. A later change of the level has no effect. While their log is off, the
// clients compose no log lines.
func LogAzure(ctx context.Context, logger *slog.Logger) {
	if logger.Enabled(ctx, slog.LevelDebug) {
		azlog.SetListener(azureListener(logger))
	}
}

// maxAzureText is the maximum size of a logged text, in bytes. The text of a
// request has a line for each header.
const maxAzureText = 4 << 10

// azureListener returns a function that logs events of the Azure clients. The
// clients omit the values of unknown headers and query parameters;
// azureListener removes other secrets.
func azureListener(logger *slog.Logger) func(azlog.Event, string) {
	return func(event azlog.Event, text string) {
		logger.Debug("azure", "event", string(event), "text", redactAzure(text))
	}
}

// redactAzure removes secrets from a log text of the Azure clients. It replaces
// the whole text if it mentions a signature or the Authorization header: when a
// signature is refused, azcosmos and azblob quote the text that they signed.
func redactAzure(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch lower := strings.ToLower(line); {
		case strings.Contains(lower, "http forbidden status"), strings.Contains(lower, "string-to-sign"):
			return "(a request was refused; the text quotes its signature and is left out)"
		case strings.Contains(lower, "authorization"), strings.Contains(lower, "bearer "), strings.Contains(lower, "sharedaccesssignature"):
			name, _, _ := strings.Cut(line, ":")
			if !strings.HasSuffix(line, ": REDACTED") {
				lines[i] = domain.Shorten(name) + ": REDACTED"
			}
		}
	}
	text, _ = config.Redact(strings.Join(lines, "\n"))
	if len(text) > maxAzureText {
		text = strings.ToValidUTF8(text[:maxAzureText], "") + "…"
	}
	return text
}
