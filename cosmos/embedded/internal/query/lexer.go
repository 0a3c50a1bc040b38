package query

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenParameter
	tokenNumber
	tokenString
	tokenSymbol
)

type lexToken struct {
	kind tokenKind
	at   int
	text string // content of a string; any other token as it is written
	num  float64
}

// isToken reports whether t is the keyword or symbol s.
func (t lexToken) isToken(s string) bool {
	switch t.kind {
	case tokenName:
		return strings.EqualFold(t.text, s)
	case tokenSymbol:
		return t.text == s
	default:
		return false
	}
}

func (t lexToken) String() string {
	if t.kind == tokenEnd {
		return "the end of the query"
	}
	return strconv.Quote(t.text)
}

// maxQuery is Cosmos DB's limit for the length of a query.
const maxQuery = 512 << 10

func lexQuery(src string) ([]lexToken, error) {
	if len(src) > maxQuery {
		return nil, &Error{maxQuery, "the query is longer than 512 KB"}
	}
	for i, r := range src {
		if r == utf8.RuneError && !strings.HasPrefix(src[i:], "\uFFFD") {
			return nil, &Error{i, "the query is not UTF-8"}
		}
	}
	var tokens []lexToken
	for i := 0; ; {
		i = skipBlank(src, i)
		if i == len(src) {
			return append(tokens, lexToken{kind: tokenEnd, at: i}), nil
		}
		t, end, err := readToken(src, i)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		i = end
	}
}

// skipBlank skips white space and comments. A comment extends from -- to the end of the line.
func skipBlank(src string, i int) int {
	for i < len(src) {
		switch {
		case strings.IndexByte(" \t\r\n", src[i]) >= 0:
			i++
		case strings.HasPrefix(src[i:], "--"):
			end := strings.IndexAny(src[i:], "\r\n")
			if end < 0 {
				return len(src)
			}
			i += end
		default:
			return i
		}
	}
	return i
}

// symbols contains each symbol after all longer symbols that start with it.
var symbols = []string{
	">>>", "!=", "<>", "<=", ">=", "<<", ">>", "||", "??",
	"=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ".", ":", "?", "*", "/", "%", "+", "-", "~", "&", "|", "^",
}

func readToken(src string, at int) (lexToken, int, error) {
	switch b := src[at]; {
	case isLetter(b):
		end := wordEnd(src, at)
		return lexToken{kind: tokenName, at: at, text: src[at:end]}, end, nil
	case b == '@':
		end := wordEnd(src, at+1)
		if end == at+1 {
			return lexToken{}, 0, &Error{at, "a parameter needs a name after @"}
		}
		return lexToken{kind: tokenParameter, at: at, text: src[at:end]}, end, nil
	case isDigit(b):
		return lexNumber(src, at)
	case b == '\'' || b == '"':
		return lexString(src, at)
	}
	for _, symbol := range symbols {
		if strings.HasPrefix(src[at:], symbol) {
			return lexToken{kind: tokenSymbol, at: at, text: symbol}, at + len(symbol), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(src[at:])
	return lexToken{}, 0, &Error{at, "character " + strconv.QuoteRune(r) + " is not supported"}
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' || b == '_' }
func isDigit(b byte) bool  { return '0' <= b && b <= '9' }

func wordEnd(src string, i int) int {
	for i < len(src) && (isLetter(src[i]) || isDigit(src[i])) {
		i++
	}
	return i
}

func lexNumber(src string, at int) (lexToken, int, error) {
	end := at
	for end < len(src) && (isDigit(src[end]) || src[end] == '.') {
		end++
	}
	if end < len(src) && src[end]|0x20 == 'e' {
		end++
		if end < len(src) && (src[end] == '+' || src[end] == '-') {
			end++
		}
		for end < len(src) && isDigit(src[end]) {
			end++
		}
	}
	f, err := strconv.ParseFloat(src[at:end], 64)
	if err != nil || end < len(src) && isLetter(src[end]) {
		return lexToken{}, 0, &Error{at, "not a number"}
	}
	return lexToken{kind: tokenNumber, at: at, text: src[at:end], num: f}, end, nil
}

func lexString(src string, at int) (lexToken, int, error) {
	quote := src[at]
	var text strings.Builder
	for i := at + 1; i < len(src); i++ {
		switch b := src[i]; b {
		case quote:
			return lexToken{kind: tokenString, at: at, text: text.String()}, i + 1, nil
		case '\\':
			r, n := unescapeRune(src[i:])
			if n == 0 {
				return lexToken{}, 0, &Error{i, "unknown escape in a string"}
			}
			text.WriteRune(r)
			i += n - 1
		default:
			text.WriteByte(b)
		}
	}
	return lexToken{}, 0, &Error{at, "the string does not end"}
}

func unescapeRune(s string) (r rune, n int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case '\'', '"', '\\', '/':
		return rune(s[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if len(s) >= 6 {
			return unescapeUnicode(s)
		}
	}
	return 0, 0
}

// unescapeUnicode decodes \u with four hexadecimal digits, or two such escapes for a character beyond 16 bits.
func unescapeUnicode(s string) (r rune, n int) {
	high, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return 0, 0
	}
	if r = rune(high); utf16.IsSurrogate(r) && len(s) >= 12 && s[6:8] == `\u` {
		if low, err := strconv.ParseUint(s[8:12], 16, 16); err == nil {
			if both := utf16.DecodeRune(r, rune(low)); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return r, 6
}
