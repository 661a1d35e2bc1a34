# The n best supports of 1..k features: Rscript regsubsets.R DATA.csv K COUNT ANSWER.txt
#
# The last column of the data is y. The answer is a line with versions, one with seconds, then the
# columns of one support a line, from 0. The clock is that of regsubsets alone, and ticks in
# milliseconds: brief calls are repeated under it. After the first call, which counts only if it
# is long, the median of three counts.
library(leaps)

words <- commandArgs(trailingOnly = TRUE)
data <- as.matrix(read.csv(words[1], header = FALSE))
k <- as.integer(words[2])
count <- as.integer(words[3])
p <- ncol(data) - 1
X <- data[, 1:p]
y <- data[, p + 1]

measured <- function(times) {
  clock <- system.time(for (i in seq_len(times)) {
    found <<- regsubsets(X, y, nbest = count, nvmax = k, method = "exhaustive", really.big = TRUE)
  })
  clock[["elapsed"]] / times
}

seconds <- measured(1)
times <- min(100, ceiling(0.1 / max(seconds, 0.001)))
if (seconds < 10) seconds <- median(replicate(3, measured(times)))
chosen <- summary(found)$which[, -1, drop = FALSE]
supports <- apply(chosen, 1, function(row) paste(which(row) - 1, collapse = " "))
versions <- paste0("R ", getRversion(), ", leaps ", packageVersion("leaps"))
writeLines(c(versions, format(seconds, digits = 6), supports), words[4])
