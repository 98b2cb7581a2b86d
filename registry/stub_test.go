package registry

func vaultCommand() string { return "" }
func runVaultCommand() int { return 0 }
