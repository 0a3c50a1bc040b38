package main

import "github.com/spf13/cobra"

func (p *process) demoCommand() *cobra.Command { return &cobra.Command{Use: "demo"} }
