"""From a study's plan to jobs on a Slurm cluster: submit, look, follow, cancel, and a cluster to rehearse on.

Jobs are sent with `sbatch` itself rather than through submitit, whose array tasks always count from 0, while
a stage that joins jobs already in the queue must keep the index of the job that it waits for (`aftercorr`);
whose single jobs are throttled (100 took 22 s); and whose jobs hand results over in pickles and wait for
them, while here run directories hold all results and nobody waits. What jobs run is a plain command line.
"""
