package console

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pageError is a reason why a page is not shown, as text for the operator.
type pageError struct {
	status int
	title  string // short description without a full stop
	detail string // sentences
}

func (r *pageError) Error() string { return r.title + ": " + r.detail }

var (
	errNoPage    = &pageError{http.StatusNotFound, "There is no such page", "The address may be old. The overview has links to all pages."}
	errOtherSite = &pageError{http.StatusForbidden, "The form is from another site", "Nothing was done. Only forms of this console are accepted. Open the console, and send the form from there."}
	errOldForm   = &pageError{http.StatusForbidden, "The form is not from this session", "Nothing was done. You have signed in again since the form was opened, or it is from another site. Open the page again; it has the text that you have typed. Check it, and send it from there."}
	errLook      = &pageError{http.StatusForbidden, "You may look, and not change anything", "Nothing was done. Your account has the role operator.read; this needs the role operator. Ask the administrator of your accounts for it, and sign in again."}
)

// toSentence returns the text of an error as a sentence.
func toSentence(err error) string {
	text := strings.TrimSuffix(err.Error(), ".")
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:] + "."
}
