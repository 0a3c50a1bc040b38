package config

import (
	"errors"
	"regexp"
	"strings"
)

// Redact replaces every key, signature and password in text, and reports
// whether it found any. Errors, logs and lists of settings use it, because an
// operator may assign a secret, such as a connection string, to the wrong
// setting.
//
// It treats the following as secrets: the value after a name such as AccountKey
// or sig, the user part of a URL, an operator's token that a node generated, a
// JSON web token, and a text that looks like a key in base64.
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
	shown = redactKeys(shown)
	return shown, shown != text
}

// The value of a named secret ends at a separator of connection strings,
// queries or sentences. The value "…", which the documentation uses in
// examples, is not a secret.
var (
	namedSecret = regexp.MustCompile(`(?i)\b(SharedAccessKey|AccountKey|SharedAccessSignature|AccessKey|password|pwd|secret|client_secret|api_?key|sig|token)\s*=\s*\\?["']?[^\s;&,"'\\]+`)
	userOfURL   = regexp.MustCompile(`://\S*@`)
	madeToken   = regexp.MustCompile(`\bmessagehub-[A-Z2-7]{26}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+`)
	base64Run   = regexp.MustCompile(`(?:[A-Za-z0-9+/]|%2[bBfF]){20,}(?:=|%3[dD]){0,2}`)
)

// redactKeys replaces texts that look like base64 keys.
func redactKeys(text string) string {
	var b strings.Builder
	end := 0
	for _, at := range base64Run.FindAllStringIndex(text, -1) {
		run, rest := text[at[0]:at[1]], text[at[1]:]
		if isPaddedKey(run) && !continuesWord(rest) || isRandom(run) {
			b.WriteString(text[end:at[0]] + redacted)
			end = at[1]
		}
	}
	b.WriteString(text[end:])
	return b.String()
}

// continuesWord reports whether text begins with a letter or a digit. If so, an
// equals sign before it is not padding, but part of NAME=VALUE.
func continuesWord(text string) bool {
	return text != "" && kindOf(text[0]) != other
}

// isPaddedKey reports whether a run of base64 characters ends with padding, and
// contains upper-case and lower-case letters.
func isPaddedKey(run string) bool {
	plain := unescaped.Replace(run)
	body := strings.TrimRight(plain, "=")
	_, has := characterKinds(body)
	return len(body) < len(plain) && len(plain)%4 == 0 && has[small] && has[capital]
}

// isRandom reports whether a run of base64 characters is long and looks random.
// Paths and compound words do not: they contain digits in at most one place,
// and few changes between lower and upper case.
func isRandom(run string) bool {
	const minRun, minPart, minDigitGroups = 40, 20, 2
	if len(run) < minRun {
		return false
	}
	part := ""
	for p := range strings.SplitSeq(strings.TrimRight(unescaped.Replace(run), "="), "/") {
		if len(p) > len(part) {
			part = p
		}
	}
	changes, has := characterKinds(part)
	digitGroups := len(digits.FindAllStringIndex(part, -1))
	return len(part) >= minPart && has[small] && has[capital] && digitGroups >= minDigitGroups && 5*changes >= 2*len(part)
}

var (
	unescaped = strings.NewReplacer("%2b", "+", "%2B", "+", "%2f", "/", "%2F", "/", "%3d", "=", "%3D", "=")
	digits    = regexp.MustCompile(`[0-9]+`)
)

// Kinds of characters that isRandom distinguishes.
const (
	small = iota
	capital
	digit
	other
)

func kindOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z':
		return small
	case 'A' <= c && c <= 'Z':
		return capital
	case '0' <= c && c <= '9':
		return digit
	}
	return other
}

// characterKinds returns which kinds of characters text contains, and how often
// the kind changes between neighbours.
func characterKinds(text string) (changes int, has [other + 1]bool) {
	for i := range len(text) {
		has[kindOf(text[i])] = true
		if i > 0 && kindOf(text[i]) != kindOf(text[i-1]) {
			changes++
		}
	}
	return changes, has
}

// hasSecret reports whether a value contains a secret.
func hasSecret(value string) bool {
	_, has := Redact(value)
	return has
}

// redactError returns err or, if its text contains a secret, an error with the
// redacted text.
func redactError(err error) error {
	if err == nil {
		return nil
	}
	if shown, has := Redact(unknownAnchor.ReplaceAllString(err.Error(), "unknown anchor")); has || shown != err.Error() {
		return errors.New(shown)
	}
	return err
}

// unknownAnchor matches the part of a YAML error that quotes a value beginning
// with an asterisk.
var unknownAnchor = regexp.MustCompile(`unknown anchor '[^']*'`)

// secretPlace returns the setting that is meant for the secret in value. The
// secret was found in the setting name.
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

// shownValue returns the value of k, or "[redacted]" if it contains a secret.
func (c *Config) shownValue(k key) string {
	shown := k.in(c).String()
	if !c.isSecretKey(k) && hasSecret(shown) {
		return redacted
	}
	return shown
}
