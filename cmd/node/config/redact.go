package config

import (
	"errors"
	"regexp"
	"strings"
)

// Redact replaces every key, signature and password in text, and reports whether there
// was one. It decides what of a value may be shown: errors, logs and listings of
// settings show no value that has a secret in it, for a value in the wrong setting may
// be a connection string.
//
// A secret is what follows a name such as AccountKey or sig, the user of a URL, a token
// of an operator that a node has made, a JSON web token, and a text that looks like a
// key in base64.
func Redact(text string) (shown string, hasSecret bool) {
	shown = namedSecret.ReplaceAllStringFunc(text, func(found string) string {
		at := strings.IndexByte(found, '=') + 1
		if value := strings.TrimLeft(found[at:], ` \"'`); strings.HasPrefix(value, redacted) || strings.HasPrefix(value, "…") {
			return found
		}
		return found[:at] + redacted
	})
	shown = userOfURL.ReplaceAllString(shown, "://"+redacted+"@")
	shown = madeToken.ReplaceAllString(shown, redacted)
	shown = base64Run.ReplaceAllStringFunc(shown, func(run string) string {
		if looksLikeKey(run) {
			return redacted
		}
		return run
	})
	return shown, shown != text
}

// The value of a named secret ends where a part of a connection string, of a query or of
// a sentence does. A value in an example of ours is "…".
var (
	namedSecret = regexp.MustCompile(`(?i)\b(SharedAccessKey|AccountKey|SharedAccessSignature|AccessKey|password|pwd|secret|client_secret|api_?key|sig|token)\s*=\s*\\?["']?[^\s;&,"'\\]+`)
	userOfURL   = regexp.MustCompile(`://\S*@`)
	madeToken   = regexp.MustCompile(`\bmessagehub-[A-Z2-7]{26}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+`)
	base64Run   = regexp.MustCompile(`(?:[A-Za-z0-9+/]|%2[bBfF]){20,}(?:=|%3[dD]){0,2}`)
)

// looksLikeKey reports whether a run of characters of base64 looks like a key: it ends
// in padding, or it is long and random. The words of a path or a name change seldom from
// small to capital letters and digits, random characters most of the time.
func looksLikeKey(run string) bool {
	const minUnpadded = 40
	body := strings.TrimRight(strings.ReplaceAll(strings.ToLower(run), "%3d", "="), "=")
	isPadded := len(body) < len(run)
	run = run[:len(body)]
	changes, hasKind := 0, [4]bool{}
	for i := range len(run) {
		kind := kindOf(run[i])
		hasKind[kind] = true
		if i > 0 && kind != kindOf(run[i-1]) {
			changes++
		}
	}
	if !hasKind[0] || !hasKind[1] {
		return false
	}
	return isPadded || hasKind[2] && len(run) >= minUnpadded && 25*changes >= 12*len(run)
}

// kindOf returns 0 for a small letter, 1 for a capital, 2 for a digit, 3 for the others.
func kindOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z':
		return 0
	case 'A' <= c && c <= 'Z':
		return 1
	case '0' <= c && c <= '9':
		return 2
	}
	return 3
}

// hasSecret reports whether a value must not be shown.
func hasSecret(value string) bool {
	_, has := Redact(value)
	return has
}

// redactError returns err, with a text that shows no secret.
func redactError(err error) error {
	if err == nil {
		return nil
	}
	if shown, has := Redact(unknownAnchor.ReplaceAllString(err.Error(), "unknown anchor")); has || shown != err.Error() {
		return errors.New(shown)
	}
	return err
}

// unknownAnchor is how YAML names a value that begins with an asterisk.
var unknownAnchor = regexp.MustCompile(`unknown anchor '[^']*'`)

// secretPlace says where a secret belongs that stands in the setting name.
func secretPlace(name, value string) string {
	place := ""
	switch {
	case strings.Contains(value, "SharedAccess"), strings.HasPrefix(value, "Endpoint=sb:"):
		place = "servicebus.connection"
	case strings.Contains(value, "AccountEndpoint="), strings.Contains(value, ".documents.azure."):
		place = "cosmos.key"
	case strings.Contains(value, "AccountName="), strings.Contains(value, ".blob.core."):
		place = "blob.key"
	case strings.HasPrefix(value, "messagehub-"):
		place = "admin.token"
	case strings.HasPrefix(name, "servicebus."):
		place = "servicebus.connection"
	case strings.HasPrefix(name, "cosmos."):
		place = "cosmos.key"
	case strings.HasPrefix(name, "blob."):
		place = "blob.key"
	}
	if place != "" {
		return place + " (" + envName(place) + ")"
	}
	return "cosmos.key, servicebus.connection, blob.key or admin.token, whichever it is for"
}

// isSecretKey reports whether the values of a key are secrets.
func (c *Config) isSecretKey(k key) bool {
	_, is := k.in(c).(*secretValue)
	return is
}

// show returns the value of k, or what may be shown of it.
func (c *Config) show(k key) string {
	shown := k.in(c).String()
	if !c.isSecretKey(k) && hasSecret(shown) {
		return redacted
	}
	return shown
}
