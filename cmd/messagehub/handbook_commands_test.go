package main

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

var heredoc = regexp.MustCompile(`<<-?'?([A-Z]+)'?`)

// commandsOf returns the arguments of each call of messagehub in a shell
// script. It understands quotes, continued lines, comments, pipes, assignments,
// $(…) outside of quotes, and here documents.
func commandsOf(script string) (commands [][]string) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	end := ""
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if end != "" {
			if strings.TrimSpace(line) == end {
				end = ""
			}
			continue
		}
		if match := heredoc.FindStringSubmatch(line); match != nil {
			end = match[1]
			line = line[:strings.Index(line, match[0])]
		}
		commands = append(commands, commandsOfLine(line)...)
	}
	return commands
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*=`)
	redirect   = regexp.MustCompile(`^[0-9]*(>>?|<)(&[0-9])?`)
	programs   = []string{"messagehub", "bin/messagehub", "./messagehub", "/usr/bin/messagehub", "/usr/local/bin/messagehub"}
)

// separator represents a shell operator that ends a command.
const separator = "\x00"

func commandsOfLine(line string) (commands [][]string) {
	isBeginning := true // the next word begins a command
	var command []string
	isOurs := false
	for _, word := range append(splitWords(line), separator) {
		switch {
		case word == separator:
			if isOurs {
				commands = append(commands, command)
			}
			command, isOurs, isBeginning = nil, false, true
		case isOurs && redirect.MatchString(word):
			commands = append(commands, command)
			command, isOurs, isBeginning = nil, false, false
		case isOurs:
			command = append(command, word)
		case isBeginning && slices.Contains(programs, word):
			isOurs = true
		case word == "--" || isBeginning && (word == "sudo" || assignment.MatchString(word)):
			isBeginning = true
		default:
			isBeginning = false
		}
	}
	return commands
}

// splitWords splits a line of a shell script into words, and removes their
// quotes. It replaces each operator that ends a command by separator.
func splitWords(line string) (words []string) {
	var word strings.Builder
	isWord := false
	flush := func() {
		if isWord {
			words = append(words, word.String())
		}
		word.Reset()
		isWord = false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'' || c == '"':
			n := strings.IndexByte(line[i+1:], c)
			if n < 0 {
				n = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+n])
			isWord = true
			i += n + 1
		case c == ' ' || c == '\t':
			flush()
		case c == '#' && !isWord:
			return words
		case c == '$' && strings.HasPrefix(line[i:], "$("):
			flush()
			words = append(words, separator)
			i++
		case strings.IndexByte("|;)", c) >= 0, c == '&' && !strings.HasSuffix(word.String(), ">"):
			flush()
			words = append(words, separator)
		default:
			word.WriteByte(c)
			isWord = true
		}
	}
	flush()
	return words
}

// acceptCommand returns an error if a command line is invalid.
func acceptCommand(words []string) error {
	cmd, rest, err := parseFlags(words)
	if err != nil {
		return err
	}
	switch {
	case cmd.Name() == "help":
		p := &process{args: []string{"messagehub"}, out: io.Discard, err: io.Discard}
		root := p.root()
		root.SetOut(io.Discard)
		return p.printHelp(root, rest)
	case !cmd.Runnable():
		return errors.New("no command of its own")
	}
	return errors.Join(cmd.ValidateArgs(rest), cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
}

// acceptFlags returns an error if a command or one of its flags does not exist.
// It does not check arguments, which may be placeholders.
func acceptFlags(words []string) error {
	_, _, err := parseFlags(words)
	return err
}

// parseFlags finds the command and parses its flags.
func parseFlags(words []string) (cmd *cobra.Command, rest []string, err error) {
	root := (&process{args: []string{"messagehub"}}).root()
	root.InitDefaultHelpCmd()
	cmd, rest, err = root.Find(words)
	if err != nil || !cmd.HasParent() && len(words) > 0 {

		if err == nil {
			err = errors.New("unknown command " + strings.Join(words, " "))
		}
		return nil, nil, err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, nil, err
	}
	return cmd, cmd.Flags().Args(), nil
}
