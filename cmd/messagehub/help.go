package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/docs"
)

// addHelp adds the command help to root. The command also prints pages of the
// handbook, and the help of root lists these pages.
func (p *process) addHelp(root *cobra.Command) {
	root.SetHelpCommand(p.helpCommand())
	helpOfCommand := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		helpOfCommand(cmd, args)
		if !cmd.HasParent() {
			fmt.Fprintf(cmd.OutOrStdout(), "\nPages of the handbook, for messagehub help TOPIC:\n%s", topicsTable())
		}
	})
}

// topicsTable formats the list of handbook pages like the list of commands.
func topicsTable() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, page := range docs.Pages() {
		fmt.Fprintf(table, "  %s\t%s\n", page.Topic, page.Title)
	}
	_ = table.Flush() // writing to memory never fails
	return b.String()
}

func (p *process) helpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "help [TOPIC|ALERT|COMMAND]",
		Short: "Print a page of the handbook, or the help of a command",
		Long: "Print a page of the handbook, the section of the page incidents about an alert, or the help of a command.\n" +
			"Without an argument, list pages and commands. A running hub shows the same pages to a browser, at /docs/ of\n" +
			"its address for operators.\n\n" +
			topicsTable(),
		Example: "  messagehub help install\n" +
			"  messagehub help incidents | less\n" +
			"  messagehub help MessageHubDown\n" +
			"  messagehub help queue skip",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			named, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, sub := range named.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			if len(args) == 0 {
				for _, page := range docs.Pages() {
					names = append(names, page.Topic+"\t"+page.Title)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.RunE = p.do(func(_ context.Context, args []string) error { return p.printHelp(cmd.Root(), args) })
	return cmd
}

// printHelp prints the help of the command that args name. If there is no such
// command, it prints the page with that name, or the section about that alert.
func (p *process) printHelp(root *cobra.Command, args []string) error {
	if named, rest, err := root.Find(args); err == nil && len(rest) == 0 {
		named.InitDefaultHelpFlag()
		return named.Help()
	}
	if len(args) == 1 {
		if page, exists := docs.Find(args[0]); exists {
			_, err := fmt.Fprint(p.out, page.Plain())
			return err
		}
		if section, exists := docs.FindAlert(args[0]); exists {
			_, err := fmt.Fprint(p.out, strings.TrimRight(section.Plain(), "\n")+"\n")
			return err
		}
	}
	return p.usage("%w", unknownTopic(root, args))
}

// unknownTopic returns the error about an unknown topic. The error suggests
// similar topics and commands.
func unknownTopic(root *cobra.Command, args []string) error {
	name := strings.Join(args, " ")
	similar := root.SuggestionsFor(name)
	topics := &cobra.Command{} // contains a command for each topic, so that cobra can suggest similar names
	for _, page := range docs.Pages() {
		topics.AddCommand(&cobra.Command{Use: page.Topic, Run: func(*cobra.Command, []string) {}})
	}
	similar = append(similar, topics.SuggestionsFor(name)...)
	if len(similar) == 0 {
		return fmt.Errorf("no topic and no command %q; messagehub help lists both", name)
	}
	return fmt.Errorf("no topic and no command %q; did you mean %s?", name, strings.Join(similar, " or "))
}
