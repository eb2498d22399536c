// SPDX-License-Identifier: GPL-2.0
/*
 * simread: a program inside the kernel that reads TCP connections and throws
 * away what it reads.
 *
 * A process writes the number of a connected socket's file descriptor into
 * /dev/simread. From then on a thread of the kernel reads what comes, as soon
 * as it comes, as the process would have: recvmsg(2) with MSG_TRUNC, woken by
 * the socket's data_ready. In user-mode Linux that saves two switches between
 * processes of the host for each packet. When the connection ends, or breaks,
 * the socket is given back, and whoever polls it hears of it.
 */

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <net/sock.h>
#include <net/tcp.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
/* Later kernels make a worker that sleeps until it is run. */
#define kthread_run_worker kthread_create_worker
#endif

/* As much as is taken out at once. */
#define GULP	(1 << 20)

struct simread {
	struct kthread_work work;
	struct socket *sock;
	void (*data_ready)(struct sock *sk);
	void (*state_change)(struct sock *sk);
};

static struct kthread_worker *reader;

static void simread_wake(struct sock *sk)
{
	struct simread *one = sk->sk_user_data;

	if (one)
		kthread_queue_work(reader, &one->work);
}

static void simread_data_ready(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	simread_wake(sk);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* A connection that is reset has nothing to be read, and is to be given back. */
static void simread_state_change(struct sock *sk)
{
	struct simread *one;

	read_lock_bh(&sk->sk_callback_lock);
	one = sk->sk_user_data;
	if (one)
		one->state_change(sk);
	simread_wake(sk);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void simread_give_back(struct simread *one)
{
	struct socket *sock = one->sock;
	struct sock *sk = sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = one->data_ready;
	sk->sk_state_change = one->state_change;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready(sk);
	sockfd_put(sock);
	kfree(one);
}

static void simread_work(struct kthread_work *work)
{
	struct simread *one = container_of(work, struct simread, work);
	struct kvec nowhere = { .iov_base = NULL, .iov_len = GULP };
	int got;

	do {
		struct msghdr msg = { };

		got = kernel_recvmsg(one->sock, &msg, &nowhere, 1, GULP,
				     MSG_DONTWAIT | MSG_TRUNC);
	} while (got == GULP);
	if (got > 0 || got == -EAGAIN || got == -EINTR)
		return;
	simread_give_back(one);
}

static ssize_t simread_write(struct file *file, const char __user *text, size_t size, loff_t *at)
{
	struct simread *one;
	struct socket *sock;
	struct sock *sk;
	int fd, err;

	err = kstrtoint_from_user(text, size, 10, &fd);
	if (err)
		return err;
	sock = sockfd_lookup(fd, &err);
	if (!sock)
		return err;
	sk = sock->sk;
	one = kzalloc(sizeof(*one), GFP_KERNEL);
	err = -ENOMEM;
	if (!one)
		goto refused;
	kthread_init_work(&one->work, simread_work);
	one->sock = sock;

	write_lock_bh(&sk->sk_callback_lock);
	err = -EINVAL;
	if (!sk_is_tcp(sk) || sk->sk_state == TCP_LISTEN || sk->sk_user_data) {
		write_unlock_bh(&sk->sk_callback_lock);
		goto refused;
	}
	one->data_ready = sk->sk_data_ready;
	one->state_change = sk->sk_state_change;
	sk->sk_user_data = one;
	sk->sk_data_ready = simread_data_ready;
	sk->sk_state_change = simread_state_change;
	write_unlock_bh(&sk->sk_callback_lock);
	/* What came before. */
	kthread_queue_work(reader, &one->work);
	return size;

refused:
	kfree(one);
	sockfd_put(sock);
	return err;
}

static const struct file_operations simread_operations = {
	.owner	= THIS_MODULE,
	.write	= simread_write,
};

static struct miscdevice simread_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "simread",
	.fops	= &simread_operations,
};

static int __init simread_init(void)
{
	reader = kthread_run_worker(0, "simread");
	if (IS_ERR(reader))
		return PTR_ERR(reader);
	return misc_register(&simread_device);
}
device_initcall(simread_init);
