package filter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	endToken     tokenKind = iota
	wordToken              // wordToken is a name or a keyword
	quotedToken            // quotedToken is a name in brackets or double quotes
	stringToken            // 'text'
	numberToken            // numberToken is a number, such as 1, 1.5, 1E3 or 0x1F
	paramToken             // @name
	symbolToken            // symbolToken is an operator, comma or parenthesis
	unknownToken           // unknownToken is a character that the language does not use
)

type filterToken struct {
	kind tokenKind
	text string
	at   int
}

// readToken reads the token that starts at index at. It also returns the index after the token.
func readToken(s string, at int) (filterToken, int, error) {
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		if !unicode.IsSpace(r) {
			break
		}
		at += size
	}
	if at == len(s) {
		return filterToken{endToken, "", at}, at, nil
	}
	switch c := s[at]; {
	case c == '\'':
		return readQuoted(s, at, '\'', stringToken)
	case c == '"':
		return readQuoted(s, at, '"', quotedToken)
	case c == '[':
		return readQuoted(s, at, ']', quotedToken)
	case isDigit(c) || c == '.' && at+1 < len(s) && isDigit(s[at+1]):
		end := readNumber(s, at)
		return filterToken{numberToken, s[at:end], at}, end, nil
	case c == '@':
		end := at + 1 + len(readWord(s[at+1:]))
		return filterToken{paramToken, s[at:end], at}, end, nil
	}
	if w := readWord(s[at:]); w != "" {
		return filterToken{wordToken, w, at}, at + len(w), nil
	}
	for _, symbol := range []string{"<>", "!=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", ".", ";"} {
		if strings.HasPrefix(s[at:], symbol) {
			return filterToken{symbolToken, symbol, at}, at + len(symbol), nil
		}
	}
	return filterToken{kind: unknownToken}, at, fmt.Errorf("%w: at byte %d: %q has no meaning", ErrSyntax, at, s[at])
}

// readQuoted reads up to the closing character. A doubled closing character stands for one such character.
func readQuoted(s string, at int, closing byte, kind tokenKind) (filterToken, int, error) {
	var text strings.Builder
	for i := at + 1; i < len(s); i++ {
		if s[i] == closing {
			if i+1 == len(s) || s[i+1] != closing {
				return filterToken{kind, text.String(), at}, i + 1, nil
			}
			i++
		}
		text.WriteByte(s[i])
	}
	return filterToken{kind: unknownToken}, at, fmt.Errorf("%w: at byte %d: %q is never closed", ErrSyntax, at, s[at])
}

func readWord(s string) string {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && r != '$' && r != '#') {
			return s[:i]
		}
	}
	return s
}

func readNumber(s string, at int) int {
	if strings.HasPrefix(s[at:], "0x") || strings.HasPrefix(s[at:], "0X") {
		at += 2
		for at < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[at]) >= 0 {
			at++
		}
		return at
	}
	digits := func() {
		for at < len(s) && isDigit(s[at]) {
			at++
		}
	}
	digits()
	if at < len(s) && s[at] == '.' {
		at++
		digits()
	}
	if at < len(s) && (s[at] == 'e' || s[at] == 'E') {
		exponent := at + 1
		if exponent < len(s) && (s[exponent] == '+' || s[exponent] == '-') {
			exponent++
		}
		if exponent < len(s) && isDigit(s[exponent]) {
			at = exponent
			digits()
		}
	}
	return at
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
