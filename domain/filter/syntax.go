package filter

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"
)

// tokenTexts are the texts for the tokens that the errors of the library name.
var tokenTexts = map[string]string{
	"Star": "*", "Dot": ".", "Filter": "[?", "Flatten": "[]", "Lparen": "(", "Rparen": ")", "Lbracket": "[", "Rbracket": "]",
	"Lbrace": "{", "Rbrace": "}", "Or": "||", "Pipe": "|", "Comma": ",", "Colon": ":", "Plus": "+", "Minus": "-", "Multiply": "×",
	"Divide": "/", "Modulo": "%", "Div": "//", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "==", "NE": "!=",
	"Current": "@", "Root": "$", "Expref": "&", "And": "&&", "Not": "!", "Assign": "=",
	"Number": "a number without backticks", "JSONLiteral": "a literal in backticks", "StringLiteral": "a string in apostrophes",
	"UnquotedIdentifier": "a name", "QuotedIdentifier": "a name in quotes", "Varref": "a variable",
	"EOF": "the end of the expression", "Unknown": "an unknown token",
}

// tokenName matches the name of a token in an error of the library. Some errors begin it with t.
var tokenName = regexp.MustCompile(`\b(?:TOK|t)([A-Z][A-Za-z]*)\b`)

// explainSyntax describes an error of the parser in the characters of the language. The library
// names its internal tokens instead, and omits the position.
func explainSyntax(err error) string {
	text := tokenName.ReplaceAllStringFunc(strings.TrimPrefix(err.Error(), "SyntaxError: "), func(name string) string {
		if text, ok := tokenTexts[tokenName.FindStringSubmatch(name)[1]]; ok {
			return text
		}
		return name
	})
	if syntax, ok := errors.AsType[parsing.SyntaxError](err); ok {
		return fmt.Sprintf("%s, at byte %d", text, syntax.Offset)
	}
	return text
}
