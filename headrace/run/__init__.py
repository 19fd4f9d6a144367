"""The package that runs projects: start, deploy, schedule, supervise, recover."""
