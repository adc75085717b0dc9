package main

import "github.com/urfave/cli/v2"

// verifyCommand holds the proofs on live things: operators, servers.
func verifyCommand() *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "do results really not change with the batch",
		Description: "Every verdict has a vacuity check and a control that must fail. Exit code 5: results\n" +
			"depend on the batch. 6: the check could not have failed, or could not be made.",
		UsageText:   "invar verify COMMAND [options]",
		Subcommands: []*cli.Command{verifyServer(), verifyOffline(), verifyOpsCommand()},
	}
}
